use crate::check::{Case, Outcome, Run, check, lacks, same, until};
use crate::client::*;
use azure_messaging_eventhubs::{ConsumerClient, StartLocation, StartPosition, models::ReceivedEventData};
use std::time::{Duration, Instant, SystemTime};

const PREFETCH: usize = 300; // the client's default

pub async fn many(run: &mut Run) -> Case {
    let count = 10 * PREFETCH + 50;
    let (p, c) = run.clients().await?;
    for first in (0..count).step_by(610) {
        send_numbers(&p, "0", first, first + 609).await?;
    }
    let since = Instant::now();
    for (i, event) in read(&c, "0", count).await?.iter().enumerate() {
        same((event.sequence_number(), text_of(event)), (Some(i as i64), i.to_string()), "event")?;
    }
    check!(since.elapsed() < Duration::from_secs(60), "it took {:?}", since.elapsed());
    run.note(format!("{count} events"));
    Ok(())
}

/// Sends 20 events to partition 0, the last ten later than the others, and gives them as received.
async fn twenty(run: &Run) -> Result<(ConsumerClient, Vec<ReceivedEventData>), Outcome> {
    let (p, c) = run.clients().await?;
    send_numbers(&p, "0", 0, 9).await?;
    let first = time_of(&read(&c, "0", 10).await?[9])?;
    let later = || first.elapsed().is_ok_and(|passed| passed > Duration::from_millis(5));
    until(10, "a later time", later).await?;
    send_numbers(&p, "0", 10, 19).await?;
    let all = read(&c, "0", 20).await?;
    Ok((c, all))
}

fn time_of(event: &ReceivedEventData) -> Result<SystemTime, Outcome> {
    event.enqueued_time().ok_or(Outcome::Fail("an event without its time".into()))
}

/// Says what comes first from a position, and that everything behind it follows.
async fn begins(c: &ConsumerClient, location: StartLocation, inclusive: bool, first: usize) -> Case {
    let what = format!("from {location:?}, inclusive: {inclusive}");
    let receiver = open(c, "0", StartPosition { location, inclusive }, None).await?;
    {
        let mut events = receiver.stream_events();
        let got = receive(&mut events, 20 - first).await.map_err(|e| e.during(&what))?;
        same(bodies(&got), texts(first, 19), &what)?;
        nothing(&mut events).await?;
    }
    Ok(receiver.close().await?)
}

pub async fn start_earliest(run: &mut Run) -> Case {
    let (c, _) = twenty(run).await?;
    begins(&c, StartLocation::Earliest, false, 0).await
}

/// The client attaches when its stream is first asked for an event.
pub async fn start_latest(run: &mut Run) -> Case {
    let (c, _) = twenty(run).await?;
    let (p, _) = run.clients().await?;
    for (i, from) in [Some(StartPosition::default()), None].into_iter().enumerate() {
        let options = azure_messaging_eventhubs::OpenReceiverOptions { start_position: from, ..Default::default() };
        let receiver = c.open_receiver_on_partition("0".into(), Some(options)).await?;
        {
            let mut late = receiver.stream_events();
            nothing(&mut late).await?;
            send_numbers(&p, "0", 20 + i, 20 + i).await?;
            same(bodies(&receive(&mut late, 1).await?), texts(20 + i, 20 + i), "what came after the reader")?;
        }
        receiver.close().await?;
    }
    Ok(())
}

pub async fn start_offset(run: &mut Run) -> Case {
    let (c, all) = twenty(run).await?;
    for at in [0, 7, 18] {
        let offset = all[at].offset().clone().unwrap_or_default();
        begins(&c, StartLocation::Offset(offset.clone()), false, at + 1).await?;
        begins(&c, StartLocation::Offset(offset), true, at).await?;
    }
    Ok(())
}

pub async fn start_sequence(run: &mut Run) -> Case {
    let (c, _) = twenty(run).await?;
    for at in [0, 7, 18] {
        begins(&c, StartLocation::SequenceNumber(at), false, at as usize + 1).await?;
        begins(&c, StartLocation::SequenceNumber(at), true, at as usize).await?;
    }
    Ok(())
}

pub async fn start_time(run: &mut Run) -> Case {
    let (c, all) = twenty(run).await?;
    let (early, late) = (time_of(&all[9])?, time_of(&all[10])?);
    begins(&c, StartLocation::EnqueuedTime(late - Duration::from_millis(1)), false, 10).await?;
    begins(&c, StartLocation::EnqueuedTime(early), false, 10).await?;
    begins(&c, StartLocation::EnqueuedTime(late), true, 10).await?;
    begins(&c, StartLocation::EnqueuedTime(early - Duration::from_secs(3600)), false, 0).await
}

pub async fn metrics() -> Case {
    lacks(&["track", "runtime", "last_enqueued"], &["consumer/mod.rs", "models/event_data.rs"])
}

/// Reads 200,000 events that were written before.
pub async fn rate(run: &mut Run) -> Case {
    const COUNT: usize = 200_000;
    let c = run.consumer().await?;
    let receiver = open(&c, "0", earliest(), None).await?;
    let mut events = receiver.stream_events();
    let since = Instant::now();
    for got in 0..COUNT {
        next(&mut events).await.map_err(|e| e.during(&format!("{got} of {COUNT} events came")))?;
    }
    run.seconds = since.elapsed().as_secs_f64();
    run.note(format!("{:.0} events/s", COUNT as f64 / run.seconds));
    Ok(())
}
