use crate::check::{Case, Outcome, Run, check, same, until};
use crate::client::*;
use azure_messaging_eventhubs::ConsumerClient;
use futures::StreamExt;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::process::Command;

pub async fn quiet(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    let open_reader = open(&c, "0", earliest(), None).await?;
    let mut events = open_reader.stream_events();
    send_numbers(&p, "0", 0, 0).await?;
    same(bodies(&receive(&mut events, 1).await?), texts(0, 0), "the first event")?;
    let quiet = Duration::from_secs(90); // the case itself
    let early = tokio::time::timeout(quiet, events.next()).await;
    check!(
        early.is_err(),
        "something came while nothing was sent: {:?}",
        early.map(|e| e.map(|e| e.map(|e| text_of(&e))))
    );
    let since = Instant::now();
    send_numbers(&p, "0", 1, 1).await?;
    let passed = since.elapsed();
    check!(passed < Duration::from_secs(5), "the second send took {passed:?}");
    same(bodies(&receive(&mut events, 1).await?), texts(1, 1), "the second event")?;
    let fresh = run.consumer().await?;
    same(bodies(&read(&fresh, "0", 2).await?), texts(0, 1), "events")?;
    same(count_of(&fresh, "0").await?, 2, "events")?;
    run.note(format!("the send after it took {} ms", passed.as_millis()));
    Ok(())
}

/// What was sent while the server was killed.
#[derive(Default)]
struct Published {
    acknowledged: Vec<String>,
    stuck: usize,     // sends that the program gave up, because the client did not
    repeats: usize,   // sends that the program repeated
    producers: usize, // new ones, because the old one did not recover
}

/// Sends numbers until the time is over; the program repeats what has failed, ten times with the same
/// producer and then with a new one.
async fn publish(place: &Place, end: Instant) -> Result<Published, Outcome> {
    let mut done = Published::default();
    let (mut producer, mut failures) = (place.producer("crash").await?, 0);
    while Instant::now() < end {
        let n = done.acknowledged.len();
        let sending = send(&producer, to_partition("0"), numbers(n, n));
        match tokio::time::timeout(Duration::from_secs(3), sending).await {
            Ok(Ok(())) => {
                done.acknowledged.push(n.to_string());
                failures = 0;
                continue;
            }
            Ok(Err(error)) => eprintln!("sending {n}: {}", error.parts().1),
            Err(_) => done.stuck += 1,
        }
        (done.repeats, failures) = (done.repeats + 1, failures + 1);
        tokio::time::sleep(Duration::from_millis(100)).await; // the server may be away
        if failures >= 10
            && let Ok(fresh) = place.producer("crash").await
        {
            (producer, failures) = (fresh, 0);
            done.producers += 1;
        }
    }
    Ok(done)
}

type Seen = Arc<Mutex<HashSet<String>>>;

/// Reads on whatever happens. The receiver begins at its start again when it attaches again.
async fn follow(c: ConsumerClient, to: Seen) -> Case {
    let receiver = open(&c, "0", earliest(), None).await?;
    loop {
        let mut events = receiver.stream_events();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => _ = to.lock().unwrap().insert(text_of(&event)),
                Err(error) => eprintln!("reading: {error}"),
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await; // the server may be away
    }
}

async fn kill_three_times() -> Case {
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(3500)).await;
        let status = Command::new("sh").args(["-c", &stand("CRASH_RESTART")]).status().await?;
        check!(status.success(), "restart: {status}");
    }
    Ok(())
}

pub async fn crash(run: &mut Run) -> Case {
    let place = Place::plain(stand("CRASH_STRING"));
    let along = Seen::default();
    let reader = tokio::spawn(follow(place.consumer("crash", ANY_GROUP).await?, along.clone()));
    let kills = tokio::spawn(kill_three_times());
    let done = publish(&place, Instant::now() + Duration::from_secs(15)).await?;
    kills.await??;
    let fresh = place.consumer("crash", ANY_GROUP).await?;
    let there: HashSet<String> = bodies(&read(&fresh, "0", count_of(&fresh, "0").await?).await?).into_iter().collect();
    let missing = |from: &HashSet<String>| done.acknowledged.iter().filter(|body| !from.contains(*body)).count();
    same(missing(&there), 0, "acknowledged and lost")?;
    until(60, "the reader that was there all the time", || missing(&along.lock().unwrap()) == 0).await?;
    reader.abort();
    let figures = format!(
        "3 kills, {} acknowledged and all there, {} sends repeated by the program",
        done.acknowledged.len(),
        done.repeats
    );
    if done.stuck > 0 {
        eprintln!("{figures}, {} that it gave up, {} new producers", done.stuck, done.producers);
        return Err(Outcome::OwnFault(
            "every acknowledged event is there, but a send that was under way when its connection ended did not \
             return: the program gave it up after 3 s"
                .into(),
        ));
    }
    check!(done.producers == 0, "{figures}, but {} producers did not recover from it", done.producers);
    run.note(figures);
    Ok(())
}
