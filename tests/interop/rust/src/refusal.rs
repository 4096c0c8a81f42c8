use crate::check::{Case, Run};
use crate::client::*;

const UNAUTHORISED: [&str; 4] = ["unauthorized", "invalidsignature", "401", "claim"];
const NOT_FOUND: [&str; 4] = ["not-found", "notfound", "not found", "could not be found"];

// What becomes of a client with everything at its default.

async fn try_send(place: &Place, hub: &str, id: &str) -> Case {
    let p = place.producer(hub).await?;
    send(&p, to_partition(id), numbers(0, 0)).await
}

async fn try_read(place: &Place, hub: &str, group: &str, id: &str) -> Case {
    let c = place.consumer(hub, group).await?;
    let receiver = open(&c, id, earliest(), None).await?;
    next(&mut receiver.stream_events()).await.map(|_| ())
}

async fn try_properties(place: &Place, hub: &str) -> Case {
    place.producer(hub).await?.get_eventhub_properties().await?;
    Ok(())
}

pub async fn listen_only(run: &mut Run) -> Case {
    let (hub, listen) = (run.hub.clone(), Place::plain(stand("LISTEN")));
    try_send(&Place::usual(), &hub, "0").await.map_err(|e| e.during("sending with the full key"))?;
    try_read(&listen, &hub, ANY_GROUP, "0").await.map_err(|e| e.during("reading"))?;
    run.told("sending", &UNAUTHORISED, try_send(&listen, &hub, "0")).await
}

pub async fn send_only(run: &mut Run) -> Case {
    let (hub, only) = (run.hub.clone(), Place::plain(stand("SEND")));
    try_send(&only, &hub, "0").await.map_err(|e| e.during("sending"))?;
    run.told("reading", &UNAUTHORISED, try_read(&only, &hub, ANY_GROUP, "0")).await
}

pub async fn wrong_key(run: &mut Run) -> Case {
    let (hub, mut wrong) = (run.hub.clone(), Place::usual());
    let parts = wrong.string.split(';');
    let parts = parts.map(|part| if part.starts_with("SharedAccessKey=") { "SharedAccessKey=wrong" } else { part });
    wrong.string = parts.collect::<Vec<_>>().join(";");
    run.told("sending", &UNAUTHORISED, try_send(&wrong, &hub, "0")).await?;
    run.told("reading", &UNAUTHORISED, try_read(&wrong, &hub, ANY_GROUP, "0")).await?;
    run.told("properties", &UNAUTHORISED, try_properties(&wrong, &hub)).await
}

pub async fn missing_hub(run: &mut Run) -> Case {
    let place = Place::usual();
    run.told("sending", &NOT_FOUND, try_send(&place, "no-such-hub", "0")).await?;
    run.told("reading", &NOT_FOUND, try_read(&place, "no-such-hub", ANY_GROUP, "0")).await?;
    run.told("properties", &NOT_FOUND, try_properties(&place, "no-such-hub")).await
}

pub async fn missing_group(run: &mut Run) -> Case {
    let (hub, place) = (run.hub.clone(), Place::usual());
    run.told("reading", &NOT_FOUND, try_read(&place, &hub, "no-such-group", "0")).await
}

pub async fn missing_partition(run: &mut Run) -> Case {
    let (hub, place) = (run.hub.clone(), Place::usual());
    let outside = ["out-of-range", "outofrange", "out of range"];
    run.told("sending", &outside, try_send(&place, &hub, "99")).await?;
    run.told("reading", &outside, try_read(&place, &hub, ANY_GROUP, "99")).await
}
