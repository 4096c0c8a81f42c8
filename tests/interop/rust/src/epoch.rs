use crate::check::{Case, Outcome, Run, check, same};
use crate::client::*;
use azure_messaging_eventhubs::error::ErrorKind;
use futures::StreamExt;

// A consumer client has one link for each partition, so each reader here has a client of its own.

/// Reads one event with a client of its own, and gives its failure.
async fn try_owner(run: &Run, epoch: Option<i64>) -> Case {
    let c = run.consumer().await?;
    let receiver = open(&c, "0", earliest(), epoch).await?;
    next(&mut receiver.stream_events()).await.map(|_| ())
}

pub async fn higher(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    send_numbers(&p, "0", 0, 0).await?;
    let first = open(&c, "0", earliest(), Some(1)).await?;
    let mut first = first.stream_events();
    next(&mut first).await.map_err(|e| e.during("epoch 1"))?;
    let c = run.consumer().await?;
    let second = open(&c, "0", earliest(), Some(2)).await?;
    let mut second = second.stream_events();
    next(&mut second).await.map_err(|e| e.during("epoch 2"))?;
    run.told("the reader of epoch 1", &["stolen"], async {
        match first.next().await {
            Some(Err(error)) => {
                check!(matches!(error.kind, ErrorKind::ConsumerDisconnected(Some(_))), "of another kind: {error}");
                Err(Outcome::from(error))
            }
            other => Ok(other),
        }
    })
    .await?;
    send_numbers(&p, "0", 1, 1).await?;
    same(text_of(&next(&mut second).await?), "1".into(), "epoch 2 reads on")
}

pub async fn lower(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    send_numbers(&p, "0", 0, 1).await?;
    let high = open(&c, "0", earliest(), Some(2)).await?;
    let mut high = high.stream_events();
    next(&mut high).await.map_err(|e| e.during("epoch 2"))?;
    let (one, none) = (Run::new(run.hub.clone()), Run::new(run.hub.clone()));
    run.told("epoch 1", &["epoch"], try_owner(&one, Some(1))).await?;
    run.told("no epoch", &["epoch"], try_owner(&none, None)).await?;
    same(text_of(&next(&mut high).await?), "1".into(), "epoch 2 reads on")
}

pub async fn sixth(run: &mut Run) -> Case {
    let (p, _) = run.clients().await?;
    send_numbers(&p, "0", 0, 1).await?;
    let mut receivers = Vec::new();
    for _ in 0..5 {
        let c = run.consumer().await?;
        receivers.push((open(&c, "0", earliest(), None).await?, c));
    }
    let mut five: Vec<_> = receivers.iter().map(|(receiver, _)| receiver.stream_events()).collect();
    for each in &mut five {
        next(each).await.map_err(|e| e.during("one of five readers"))?;
    }
    let another = Run::new(run.hub.clone());
    run.told("the sixth reader", &["limit", "quota", "exceed"], try_owner(&another, None)).await?;
    for each in &mut five {
        next(each).await.map_err(|e| e.during("one of five readers, later"))?;
    }
    Ok(())
}
