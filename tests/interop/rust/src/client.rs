use crate::check::{Case, Outcome, Run, check};
use azure_messaging_eventhubs::{
    ConsumerClient, EventDataBatchOptions, EventReceiver, OpenReceiverOptions, ProducerClient, StartLocation,
    StartPosition,
    models::{AmqpTransport, EventData, ReceivedEventData},
};
use futures::{Stream, StreamExt};
use std::time::Duration;

pub const ANY_GROUP: &str = "$Default";
pub const IDS: [&str; 4] = ["0", "1", "2", "3"];

pub fn stand(name: &str) -> String {
    std::env::var(format!("STAND_{name}")).unwrap_or_default()
}

/// How a client gets to a server.
#[derive(Clone)]
pub struct Place {
    pub string: String,
    pub endpoint: String,
    pub transport: AmqpTransport,
}

impl Place {
    /// Plain TCP at the port of the emulator's string. The client takes only the host from it, and TLS;
    /// the port and plain TCP are told by the custom endpoint.
    pub fn plain(string: String) -> Self {
        let host = string.split("sb://").nth(1).and_then(|rest| rest.split([';', '/']).next());
        let endpoint = format!("amqp://{}", host.unwrap_or_default());
        Place { string, endpoint, transport: AmqpTransport::Tcp }
    }

    pub fn usual() -> Self {
        Place::plain(stand("STRING"))
    }

    pub async fn producer(&self, hub: &str) -> Result<ProducerClient, Outcome> {
        let builder = ProducerClient::builder().with_custom_endpoint(self.endpoint.clone());
        let builder = builder.with_transport(self.transport);
        Ok(builder.open_with_connection_string(&self.string, Some(hub)).await?)
    }

    pub async fn consumer(&self, hub: &str, group: &str) -> Result<ConsumerClient, Outcome> {
        let builder = ConsumerClient::builder().with_custom_endpoint(self.endpoint.clone());
        let builder = builder.with_transport(self.transport).with_consumer_group(group.into());
        Ok(builder.open_with_connection_string(&self.string, Some(hub)).await?)
    }
}

impl Run {
    /// A producer and a consumer with everything at its default.
    pub async fn clients(&self) -> Result<(ProducerClient, ConsumerClient), Outcome> {
        Ok((Place::usual().producer(&self.hub).await?, self.consumer().await?))
    }

    pub async fn consumer(&self) -> Result<ConsumerClient, Outcome> {
        Place::usual().consumer(&self.hub, ANY_GROUP).await
    }
}

pub fn to_partition(id: &str) -> Option<EventDataBatchOptions> {
    Some(EventDataBatchOptions { partition_id: Some(id.into()), ..Default::default() })
}

/// Puts events into one batch and sends it.
pub async fn send(producer: &ProducerClient, options: Option<EventDataBatchOptions>, events: Vec<EventData>) -> Case {
    let batch = producer.create_batch(options).await?;
    for event in events {
        check!(batch.try_add_event_data(event, None)?, "too large for a batch");
    }
    Ok(producer.send_batch(batch, None).await?)
}

pub fn numbers(first: usize, last: usize) -> Vec<EventData> {
    (first..=last).map(|n| EventData::from(n.to_string())).collect()
}

/// Sends the numbers from first to last as texts to a partition.
pub async fn send_numbers(producer: &ProducerClient, id: &str, first: usize, last: usize) -> Case {
    send(producer, to_partition(id), numbers(first, last)).await.map_err(|e| e.during("sending numbers"))
}

pub fn earliest() -> StartPosition {
    StartPosition { location: StartLocation::Earliest, inclusive: false }
}

pub async fn open(
    consumer: &ConsumerClient,
    id: &str,
    from: StartPosition,
    owner_level: Option<i64>,
) -> Result<EventReceiver, Outcome> {
    let options = OpenReceiverOptions { start_position: Some(from), owner_level, ..Default::default() };
    Ok(consumer.open_receiver_on_partition(id.into(), Some(options)).await?)
}

type Got = azure_messaging_eventhubs::Result<ReceivedEventData>;

/// The next event, or how the stream ended.
pub async fn next(events: &mut (impl Stream<Item = Got> + Unpin)) -> Result<ReceivedEventData, Outcome> {
    match tokio::time::timeout(Duration::from_secs(60), events.next()).await {
        Ok(Some(event)) => Ok(event?),
        Ok(None) => Err(Outcome::Fail("the stream ended without an error".into())),
        Err(_) => Err(Outcome::Fail("no event within 60 s".into())),
    }
}

/// Takes exactly count events.
pub async fn receive(
    events: &mut (impl Stream<Item = Got> + Unpin),
    count: usize,
) -> Result<Vec<ReceivedEventData>, Outcome> {
    let mut got = Vec::new();
    while got.len() < count {
        let event = next(events).await;
        got.push(event.map_err(|e| e.during(&format!("{} of {count} events came", got.len())))?);
    }
    Ok(got)
}

/// Says that no event comes for a while.
pub async fn nothing(events: &mut (impl Stream<Item = Got> + Unpin)) -> Case {
    let more = tokio::time::timeout(Duration::from_millis(300), events.next()).await;
    check!(more.is_err(), "one event more, or an end: {:?}", more.map(|e| e.map(|e| e.map(|e| text_of(&e)))));
    Ok(())
}

pub async fn read(consumer: &ConsumerClient, id: &str, count: usize) -> Result<Vec<ReceivedEventData>, Outcome> {
    let receiver = open(consumer, id, earliest(), None).await?;
    let got = receive(&mut receiver.stream_events(), count).await?;
    receiver.close().await?;
    Ok(got)
}

/// How many events a partition has ever got.
pub async fn count_of(consumer: &ConsumerClient, id: &str) -> Result<usize, Outcome> {
    let properties = consumer.get_partition_properties(id).await?;
    Ok(usize::try_from(properties.last_enqueued_sequence_number + 1)?)
}

pub fn text_of(event: &ReceivedEventData) -> String {
    String::from_utf8_lossy(event.event_data().body().unwrap_or_default()).into_owned()
}

pub fn bodies(events: &[ReceivedEventData]) -> Vec<String> {
    events.iter().map(text_of).collect()
}

pub fn texts(first: usize, last: usize) -> Vec<String> {
    (first..=last).map(|n| n.to_string()).collect()
}
