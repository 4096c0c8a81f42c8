//! Azure's own Rust client in the common cases, see ../CASES.md; ./run builds and starts it.
//!
//!     interop CASE...     runs cases, several at once
//!     interop rate        measures receiving
//!     interop processor   is one of the processes that the case "processor" starts
//!     interop stranger    is the process of the case "tls" that does not trust the stand's authority
mod body;
mod check;
mod client;
mod epoch;
mod life;
mod processor;
mod read;
mod refusal;
mod road;
mod send;
mod store;

use check::{Case, Outcome, Run};
use std::{pin::Pin, sync::Arc};
use tokio::sync::Semaphore;

const AT_ONCE: usize = 4; // cases that run at the same time

type Work<'a> = Pin<Box<dyn Future<Output = Case> + Send + 'a>>;

fn work(run: &mut Run) -> Work<'_> {
    match run.hub.as_str() {
        "properties" => Box::pin(send::properties(run)),
        "send-list" => Box::pin(send::list()),
        "send-batch" => Box::pin(send::batch(run)),
        "send-partition" => Box::pin(send::partition(run)),
        "send-key" => Box::pin(send::key(run)),
        "send-ids" => Box::pin(send::ids(run)),
        "size-below" => Box::pin(send::size_below(run)),
        "size-above" => Box::pin(send::size_above(run)),
        "buffered" => Box::pin(send::buffered(run)),
        "idempotent" => Box::pin(send::idempotent()),
        "read-many" => Box::pin(read::many(run)),
        "start-earliest" => Box::pin(read::start_earliest(run)),
        "start-latest" => Box::pin(read::start_latest(run)),
        "start-offset" => Box::pin(read::start_offset(run)),
        "start-sequence" => Box::pin(read::start_sequence(run)),
        "start-time" => Box::pin(read::start_time(run)),
        "metrics" => Box::pin(read::metrics()),
        "rate" => Box::pin(read::rate(run)),
        "epoch-higher" => Box::pin(epoch::higher(run)),
        "epoch-lower" => Box::pin(epoch::lower(run)),
        "sixth-reader" => Box::pin(epoch::sixth(run)),
        "annotated" => Box::pin(body::annotated(run)),
        "body-value" => Box::pin(body::value(run)),
        "body-sequence" => Box::pin(body::sequence(run)),
        "listen-only" => Box::pin(refusal::listen_only(run)),
        "send-only" => Box::pin(refusal::send_only(run)),
        "wrong-key" => Box::pin(refusal::wrong_key(run)),
        "missing-hub" => Box::pin(refusal::missing_hub(run)),
        "missing-group" => Box::pin(refusal::missing_group(run)),
        "missing-partition" => Box::pin(refusal::missing_partition(run)),
        "tls" => Box::pin(road::tls(run)),
        "websocket" => Box::pin(road::websocket(run)),
        "emulator" => Box::pin(road::emulator(run)),
        "quiet" => Box::pin(life::quiet(run)),
        "crash" => Box::pin(life::crash(run)),
        "processor" => Box::pin(processor::processor(run)),
        _ => Box::pin(async { Err(Outcome::Fail("there is no such case here".into())) }),
    }
}

/// Runs the case and says what became of it.
async fn line(name: String) -> String {
    let mut run = Run::new(name);
    let case = work(&mut run).await;
    run.line(case)
}

/// On one thread. On several, fe2o3-amqp 0.16.2, on which the client stands, loses an answer now and then: it
/// hands a message to the session first and notes it as unsettled afterwards (link/sender_link.rs, lines 229
/// to 243). When the outcome comes in between, on another thread, it finds no such message and is dropped
/// (link/mod.rs, line 688), and the sender waits for ever. On one thread nothing comes in between, since
/// nothing is awaited there.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match names.first().map(String::as_str) {
        Some("processor") => return processor::be_processor().await,
        Some("stranger") => return road::be_stranger().await,
        _ => {}
    }
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut cases = Vec::new();
    for name in names {
        let places = places.clone();
        let case = async move {
            let _place = places.acquire().await;
            println!("{}", line(name).await);
        };
        cases.push(tokio::spawn(case)); // a panic ends only its own case, which then has no line
    }
    for case in cases {
        let _ = case.await;
    }
}
