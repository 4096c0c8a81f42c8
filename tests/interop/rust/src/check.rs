use std::{
    fmt::Debug,
    fs,
    time::{Duration, Instant},
};

/// What a case comes to, besides passing.
#[derive(Debug)]
pub enum Outcome {
    Fail(String),
    Absent(String), // the client has no such thing; the text is the proof
    OwnFault(String),
    Skipped(String),
}

pub type Case = Result<(), Outcome>;

impl<E: std::error::Error> From<E> for Outcome {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}"); // the client's errors do not all say what is behind them
            cause = error.source();
        }
        Outcome::Fail(text)
    }
}

impl Outcome {
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Outcome::Fail(text) => ("fail", text),
            Outcome::Absent(text) => ("absent", text),
            Outcome::OwnFault(text) => ("own-fault", text),
            Outcome::Skipped(text) => ("skipped", text),
        }
    }

    /// Says what was being done when it failed.
    pub fn during(self, what: &str) -> Self {
        Outcome::Fail(format!("{what}: {}", self.parts().1))
    }
}

/// One run of a case. Its hub has its name.
pub struct Run {
    pub hub: String,
    pub seconds: f64, // how long it took until the program was told, where that is asked
    since: Instant,
    notes: Vec<String>, // what its line says when it passes
}

impl Run {
    pub fn new(hub: String) -> Self {
        Run { hub, seconds: 0.0, since: Instant::now(), notes: Vec::new() }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn line(&mut self, case: Case) -> String {
        if self.seconds == 0.0 {
            self.seconds = self.since.elapsed().as_secs_f64();
        }
        let mut text = self.notes.join(", ");
        let mut status = "pass";
        if let Err(outcome) = &case {
            let (name, why) = outcome.parts();
            status = name;
            text = format!("{text} {why}");
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        format!("{} {status} {:.2} {}", self.hub, self.seconds, words.join(" "))
    }

    /// Waits for a call that must fail: within 10 s, and with an error that names the fault.
    pub async fn told<T>(
        &mut self,
        what: &str,
        faults: &[&str],
        call: impl Future<Output = Result<T, Outcome>>,
    ) -> Case {
        let since = Instant::now();
        let outcome = tokio::time::timeout(Duration::from_secs(100), call).await;
        let passed = since.elapsed().as_secs_f64();
        let Ok(result) = outcome else {
            return Err(Outcome::Fail(format!("{what}: not told within 100 s")));
        };
        let Err(error) = result else {
            return Err(Outcome::Fail(format!("{what}: no error")));
        };
        let text = error.parts().1;
        let low = text.to_lowercase();
        check!(faults.iter().any(|fault| low.contains(fault)), "{what}: the error is {text}");
        check!(passed < 10.0, "{what}: told after {passed:.1} s: {text}");
        self.seconds = self.seconds.max(passed);
        Ok(())
    }
}

/// A check that failed ends its case.
macro_rules! check {
    ($ok:expr, $($why:tt)*) => {
        if !$ok {
            return Err($crate::check::Outcome::Fail(format!($($why)*)));
        }
    };
}
pub(crate) use check;

pub fn same<T: PartialEq + Debug>(got: T, want: T, what: &str) -> Case {
    if got == want {
        return Ok(());
    }
    let (got, want) = (format!("{got:?}"), format!("{want:?}"));
    Err(Outcome::Fail(format!("{what}: {got:.300} instead of {want:.300}")))
}

/// Waits for something to become true.
pub async fn until(seconds: u64, what: &str, mut done: impl FnMut() -> bool) -> Case {
    let end = Instant::now() + Duration::from_secs(seconds);
    while !done() {
        check!(Instant::now() < end, "{what}: not within {seconds} s");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// The public functions and fields of a file of the client's source, up to its tests.
fn public_names(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim).take_while(|line| *line != "mod tests {");
    let declared = lines.filter_map(|line| line.strip_prefix("pub "));
    let ends = |c: char| !(c.is_alphanumeric() || c == '_');
    declared
        .filter_map(|line| {
            let name = line.trim_start_matches("async ").trim_start_matches("fn ");
            let field = line.split(':').next().is_some_and(|head| !head.contains(' '));
            (field || line.contains("fn ")).then(|| name.split(ends).next().unwrap_or(""))
        })
        .collect()
}

/// Proves that the client has no such thing, by all public names of these files of its source. It
/// fails when one of them speaks of it.
pub fn lacks(words: &[&str], files: &[&str]) -> Case {
    let source = std::env::var("INTEROP_SOURCE")?;
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(format!("{source}/{file}"))?;
        let mut names = public_names(&text);
        names.sort_unstable();
        names.dedup();
        check!(names.len() > 3, "no public names found in {file}");
        found.push(format!("{file} has only {}", names.join(" ")));
    }
    let text = found.join("; ");
    let spoken = words.iter().find(|word| text.contains(**word));
    check!(spoken.is_none(), "the client may have it now: {text}");
    Err(Outcome::Absent(text))
}
