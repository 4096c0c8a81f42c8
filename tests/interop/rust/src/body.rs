use crate::check::{Case, Outcome, Run, check, same};
use crate::client::*;
use azure_core::time::Duration;
use azure_core_amqp::{
    AmqpList, AmqpMessage, AmqpOrderedMap, AmqpSymbol, AmqpTimestamp, AmqpValue,
    message::{AmqpAnnotationKey, AmqpAnnotations, AmqpMessageBody, AmqpMessageHeader, AmqpMessageProperties},
};
use azure_messaging_eventhubs::SendMessageOptions;
use std::time::SystemTime;

/// Sends messages, each alone and then all in one batch, and gives what comes back of them.
async fn exchange(run: &Run, messages: &[AmqpMessage]) -> Result<Vec<AmqpMessage>, Outcome> {
    let (p, c) = run.clients().await?;
    for message in messages {
        let options = SendMessageOptions { partition_id: Some("0".into()) };
        p.send_message(message.clone(), Some(options)).await?;
    }
    let batch = p.create_batch(to_partition("0")).await?;
    for message in messages {
        check!(batch.try_add_amqp_message(message.clone(), None)?, "a batch does not take it");
    }
    p.send_batch(batch, None).await?;
    let got = read(&c, "0", 2 * messages.len()).await?;
    Ok(got.iter().map(|event| event.raw_amqp_message().clone()).collect())
}

fn one_annotation(name: &str, value: AmqpValue) -> AmqpAnnotations {
    AmqpAnnotations::from(vec![(AmqpSymbol::from(name), value)])
}

fn every_section() -> AmqpMessage {
    let when = AmqpTimestamp::from(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000));
    let mut annotations = one_annotation("x-opt-mine", "m".into());
    annotations.insert(AmqpSymbol::from("x-opt-number"), 3i64);
    let header =
        AmqpMessageHeader { durable: true, priority: 7, time_to_live: Some(Duration::hours(1)), ..Default::default() };
    AmqpMessage::builder()
        .with_header(header)
        .with_delivery_annotations(one_annotation("x-opt-delivery", "d".into()))
        .with_message_annotations(annotations)
        .with_properties(AmqpMessageProperties {
            message_id: Some(8u64.into()),
            user_id: Some(b"u".to_vec()),
            to: Some("t".into()),
            subject: Some("s".into()),
            reply_to: Some("r".into()),
            correlation_id: Some(7u64.into()),
            content_type: Some("text/plain".into()),
            content_encoding: Some("gzip".into()),
            absolute_expiry_time: Some(when.clone()),
            creation_time: Some(when),
            group_id: Some("g".into()),
            group_sequence: Some(3),
            reply_to_group_id: Some("rg".into()),
        })
        .add_application_property("a".into(), "b")
        .with_body(vec![b"one".to_vec(), b"two".to_vec()])
        .with_footer(one_annotation("x-opt-foot", "f".into()))
        .build()
}

pub async fn annotated(run: &mut Run) -> Case {
    let sent = every_section();
    for got in exchange(run, std::slice::from_ref(&sent)).await? {
        check!(got.body == sent.body, "the body changed");
        same(&got.properties, &sent.properties, "properties")?;
        same(&got.application_properties, &sent.application_properties, "application properties")?;
        same(&got.footer, &sent.footer, "footer")?;
        same(&got.delivery_annotations, &sent.delivery_annotations, "delivery annotations")?;
        check!(got.header.is_none() || got.header == sent.header, "header: {:?}", got.header);
        let annotations = got.message_annotations.unwrap_or_default();
        let annotation = |name: &str| annotations.0.get(&AmqpAnnotationKey::Symbol(name.into())).cloned();
        same(annotation("x-opt-mine"), Some("m".into()), "message annotation")?;
        same(annotation("x-opt-number"), Some(AmqpValue::Long(3)), "message annotation")?;
    }
    Ok(())
}

/// Sends messages that have nothing but these bodies.
async fn come_back(run: &Run, bodies: Vec<AmqpMessageBody>) -> Case {
    let build = |body: &AmqpMessageBody| AmqpMessage::builder().with_body(body.clone()).build();
    let messages: Vec<AmqpMessage> = bodies.iter().map(build).collect();
    for (i, got) in exchange(run, &messages).await?.into_iter().enumerate() {
        check!(got.body == bodies[i % bodies.len()], "body {i} came back changed");
    }
    Ok(())
}

pub async fn value(run: &mut Run) -> Case {
    let map: AmqpOrderedMap<AmqpValue, AmqpValue> = vec![("k".into(), 1i64.into())].into();
    let values = [AmqpValue::from("text"), AmqpValue::Long(-7), AmqpValue::Map(map), AmqpValue::Boolean(true)];
    come_back(run, values.into_iter().map(AmqpMessageBody::Value).collect()).await
}

pub async fn sequence(run: &mut Run) -> Case {
    let mixed = AmqpList(vec![1i64.into(), "a".into(), true.into()]);
    let two = vec![AmqpList(vec![1i64.into()]), AmqpList(vec!["b".into(), "c".into()])];
    come_back(run, vec![AmqpMessageBody::Sequence(vec![mixed]), AmqpMessageBody::Sequence(two)]).await
}
