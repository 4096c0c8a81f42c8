use crate::check::{Case, Outcome, Run, check, lacks, same};
use crate::client::*;
use azure_core_amqp::AmqpTimestamp;
use azure_messaging_eventhubs::{
    BufferedProducerClient, EventDataBatchOptions, SendEventOptions,
    models::{EventData, MessageId},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

fn lately(time: Option<SystemTime>) -> bool {
    let age = time.and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age < Duration::from_secs(3600))
}

pub async fn properties(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    for hub in [p.get_eventhub_properties().await?, c.get_eventhub_properties().await?] {
        same((hub.name.as_str(), hub.partition_ids), ("properties", IDS.map(String::from).to_vec()), "hub")?;
        check!(lately(hub.created_on), "created {:?}", hub.created_on);
    }
    let empty = c.get_partition_properties("1").await?;
    check!(empty.is_empty && empty.last_enqueued_sequence_number == -1, "an empty partition: {empty:?}");
    send_numbers(&p, "1", 0, 2).await?;
    let full = p.get_partition_properties("1").await?;
    same((full.beginning_sequence_number, full.last_enqueued_sequence_number), (0, 2), "numbers")?;
    let events = read(&c, "1", 3).await?;
    same(Some(full.last_enqueued_offset), events[2].offset().clone(), "last offset")?;
    same(full.last_enqueued_time_utc, events[2].enqueued_time(), "last time")?;
    same((full.id.as_str(), full.eventhub.as_str(), full.is_empty), ("1", "properties", false), "names")
}

pub async fn list() -> Case {
    lacks(&["send_events", "send_list", "send_messages"], &["producer/mod.rs"])
}

pub async fn idempotent() -> Case {
    lacks(&["idempot", "group", "epoch", "owner_level"], &["producer/mod.rs", "producer/batch.rs"])
}

/// A batch filled to the brim.
pub async fn batch(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    let batch = p.create_batch(to_partition("2")).await?;
    let body = |n: i64| format!("{n:010}{}", "x".repeat(9990));
    let mut count = 0;
    while batch
        .try_add_event_data(EventData::builder().with_body(body(count)).add_property("n".into(), count).build(), None)?
    {
        count += 1;
    }
    check!(count >= 90, "{count} events fit");
    same(batch.len(), count as usize, "length of the batch")?;
    p.send_batch(batch, None).await?;
    for (i, event) in (0..).zip(read(&c, "2", count as usize).await?) {
        same(event.sequence_number(), Some(i), "sequence number")?;
        same(text_of(&event), body(i), "body")?;
        let properties = event.event_data().properties().cloned().unwrap_or_default();
        same(properties, [("n".to_string(), i.into())].into(), "properties")?;
    }
    same(count_of(&c, "2").await?, count as usize, "events")?;
    run.note(format!("{count} events"));
    Ok(())
}

pub async fn partition(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    for id in ["3", "0", "2"] {
        send_numbers(&p, id, 0, 3).await?;
        let one = SendEventOptions { partition_id: Some(id.into()) };
        p.send_event("4", Some(one)).await?; // without a batch
        let got = read(&c, id, 5).await?;
        same(bodies(&got), texts(0, 4), "bodies")?;
        check!(got[0].partition_key().is_none(), "a key where none was given");
    }
    for event in numbers(0, 7) {
        send(&p, None, vec![event]).await?; // each somewhere
    }
    p.send_event("8", None).await?;
    let mut total = 0;
    for id in IDS {
        total += count_of(&c, id).await?;
    }
    same(total, 24, "events in all")
}

pub async fn key(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    for n in 0..100 {
        let partition_key = Some(format!("key-{}", n % 10));
        let options = EventDataBatchOptions { partition_key, ..Default::default() };
        send(&p, Some(options), numbers(n, n)).await?;
    }
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut used = BTreeMap::new();
    for id in IDS {
        let count = count_of(&c, id).await?;
        for event in read(&c, id, count).await? {
            let Some(key) = event.partition_key().clone() else {
                return Err(Outcome::Fail("an event came without its key".into()));
            };
            let before = used.insert(key.clone(), id);
            check!(before.is_none_or(|before| before == id), "{key} is in {before:?} and {id}");
            all.entry(key).or_default().push(text_of(&event));
        }
    }
    let order = |key: usize| (0..10).map(|n| (n * 10 + key).to_string()).collect();
    let want: BTreeMap<String, Vec<String>> = (0..10).map(|key| (format!("key-{key}"), order(key))).collect();
    same(all, want, "what came of each key")?;
    run.note(format!("10 keys on {} partitions", used.values().collect::<BTreeSet<_>>().len()));
    Ok(())
}

pub async fn ids(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    let sent = EventData::builder()
        .with_body("body")
        .with_content_type("text/plain".into())
        .with_correlation_id("correlation")
        .with_message_id("message")
        .add_property("text".into(), "a")
        .add_property("int".into(), -5i32)
        .add_property("long".into(), 1i64 << 60)
        .add_property("ulong".into(), 1u64 << 63)
        .add_property("double".into(), 1.5f64)
        .add_property("bool".into(), true)
        .add_property("time".into(), AmqpTimestamp::from(time))
        .add_property("bytes".into(), vec![0u8, 255])
        .build();
    let number = EventData::builder().with_body("").with_message_id(1u64 << 40).build();
    send(&p, to_partition("0"), vec![sent.clone(), number.clone()]).await?;
    p.send_event(sent.clone(), Some(SendEventOptions { partition_id: Some("0".into()) })).await?;
    let got = read(&c, "0", 3).await?;
    check!(*got[0].event_data() == sent, "the event: {:?}", got[0].event_data());
    check!(*got[1].event_data() == number, "the event with a number: {:?}", got[1].event_data());
    check!(*got[2].event_data() == sent, "the event without a batch: {:?}", got[2].event_data());
    check!(lately(got[0].enqueued_time()), "enqueued {:?}", got[0].enqueued_time());
    same(got[2].event_data().message_id(), Some(&MessageId::from("message")), "message id")
}

pub async fn size_below(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    let big = "0123456789".repeat(100_000);
    p.send_event(big.clone(), Some(SendEventOptions { partition_id: Some("0".into()) })).await?;
    check!(text_of(&read(&c, "0", 1).await?[0]) == big, "it came back changed");
    let batch = p.create_batch(to_partition("0")).await?;
    check!(!batch.try_add_event_data(big, None)?, "a batch takes it now");
    run.note("by send_event; a batch counts its first event twice and takes half as much");
    Ok(())
}

/// A batch does not take it. Without a batch nobody looks at the size: fe2o3-amqp, on which the client
/// stands, cuts the message at the link's limit and gives its last part a second delivery-id, which AMQP
/// forbids; then it waits for ever, though its session was ended with that error.
pub async fn size_above(run: &mut Run) -> Case {
    let (p, c) = run.clients().await?;
    let (big, partition_id) = ("x".repeat(1_100_000), Some("0".to_string()));
    let batch = p.create_batch(to_partition("0")).await?;
    check!(!batch.try_add_event_data(big.clone(), None)?, "a batch takes it");
    drop(batch);
    let two = EventDataBatchOptions { max_size_in_bytes: Some(2 << 20), ..Default::default() };
    run.told("a batch of 2 MiB", &["invalid maximum batch size"], async { Ok(p.create_batch(Some(two)).await?) })
        .await?;
    send_numbers(&p, "0", 7, 7).await?;
    same(bodies(&read(&c, "0", 1).await?), texts(7, 7), "bodies")?;
    let alone = p.send_event(big, Some(SendEventOptions { partition_id }));
    let Ok(answer) = tokio::time::timeout(Duration::from_secs(10), alone).await else {
        let (p, c) = run.clients().await?;
        send_numbers(&p, "0", 8, 8).await?;
        same(bodies(&read(&c, "0", 2).await?), texts(7, 8), "bodies of another producer")?;
        return Err(Outcome::OwnFault(
            "a batch refuses it, but send_event waits for ever: fe2o3-amqp 0.16.2 (link/sender_link.rs) cuts the \
             message at max-message-size, gives its last part another delivery-id (AMQP 1.0, 2.7.5: an error), and \
             does not wake the sender when the session is ended for it"
                .into(),
        ));
    };
    run.told("without a batch", &["size-exceeded", "sizeexceeded", "exceeds the limit"], async { Ok(answer?) }).await?;
    send_numbers(&p, "0", 8, 8).await?;
    same(bodies(&read(&c, "0", 2).await?), texts(7, 8), "bodies")
}

pub async fn buffered(run: &mut Run) -> Case {
    let failed = Arc::new(Mutex::new(Vec::new()));
    let (place, lost) = (Place::usual(), failed.clone());
    let p = BufferedProducerClient::builder()
        .with_custom_endpoint(place.endpoint.clone())
        .with_on_send_failed(move |context| {
            lost.lock().unwrap().push(context.error.to_string());
            async {}
        })
        .open_with_connection_string(&place.string, Some(&run.hub))
        .await?;
    p.enqueue_events(numbers(0, 999), None).await?;
    p.flush().await?;
    same(p.total_buffered_event_count(), 0, "still there")?;
    p.close().await?;
    check!(failed.lock().unwrap().is_empty(), "failed: {:?}", failed.lock().unwrap());
    let c = run.consumer().await?;
    let mut all = Vec::new();
    for id in IDS {
        all.append(&mut bodies(&read(&c, id, count_of(&c, id).await?).await?));
    }
    all.sort_by_key(|body| body.parse::<usize>().unwrap_or(usize::MAX));
    same(all, texts(0, 999), "events")
}
