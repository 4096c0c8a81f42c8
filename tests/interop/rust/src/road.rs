use crate::check::{Case, Run, check, same};
use crate::client::*;
use azure_core::time::Duration;
use azure_messaging_eventhubs::{ProducerClient, RetryOptions, models::AmqpTransport};
use tokio::process::Command;

/// Asks for properties, sends and reads.
async fn walk(run: &Run, place: &Place) -> Case {
    let p = place.producer(&run.hub).await?;
    let c = place.consumer(&run.hub, ANY_GROUP).await?;
    same(p.get_eventhub_properties().await?.partition_ids, IDS.map(String::from).to_vec(), "partitions")?;
    send_numbers(&p, "0", 0, 9).await?;
    same(bodies(&read(&c, "0", 10).await?), texts(0, 9), "bodies")?;
    p.close().await?;
    Ok(c.close().await?)
}

/// The client reads the string but neither its port nor UseDevelopmentEmulator.
pub async fn emulator(run: &mut Run) -> Case {
    run.note("the port and plain TCP come from with_custom_endpoint(amqp://...)");
    walk(run, &Place::usual()).await
}

fn secure() -> Place {
    let endpoint = format!("amqps://localhost:{}", stand("AMQPS"));
    Place { string: stand("TLS_STRING"), endpoint, transport: AmqpTransport::Tcp }
}

/// It trusts the authorities of the system, or those of SSL_CERT_FILE, which ./run sets; so a process
/// without that variable must refuse the stand's certificate.
pub async fn tls(run: &mut Run) -> Case {
    walk(run, &secure()).await?;
    let mut stranger = Command::new(std::env::current_exe()?);
    let output = stranger.arg("stranger").env_remove("SSL_CERT_FILE").output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    check!(said.to_lowercase().contains("unknownissuer"), "without the authority: {said}");
    run.note("with_custom_endpoint(amqps://...) and SSL_CERT_FILE");
    Ok(())
}

pub async fn be_stranger() {
    let (place, once) =
        (secure(), RetryOptions { max_retries: 0, max_total_elapsed: Duration::seconds(5), ..Default::default() });
    let builder = ProducerClient::builder().with_custom_endpoint(place.endpoint.clone()).with_retry_options(once);
    match builder.open_with_connection_string(&place.string, Some("tls")).await {
        Ok(_) => println!("a certificate that nobody vouched for was taken"),
        Err(error) => println!("{error}"),
    }
}

pub async fn websocket(run: &mut Run) -> Case {
    let endpoint = format!("wss://localhost:{}", stand("HTTPS"));
    let place = Place { string: stand("TLS_STRING"), endpoint, transport: AmqpTransport::WebSocket };
    walk(run, &place).await
}
