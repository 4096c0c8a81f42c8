use crate::check::{Case, Outcome, Run, check, until};
use crate::client::*;
use crate::store::Store;
use azure_core::time::Duration as Span;
use azure_messaging_eventhubs::{EventProcessor, ProducerClient, models::StartPositions, processor::PartitionClient};
use futures::StreamExt;
use std::{
    collections::{HashMap, HashSet},
    io::{Read, Write},
    process::Stdio,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    task::LocalSet,
};

const BOX: &str = "rust-checkpoints";

/// Is one process: it says each body that it has processed, and marks it. It ends with its parent.
pub async fn be_processor() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    if let Err(outcome) = process().await {
        eprintln!("a process: {}", outcome.parts().1);
        std::process::exit(1);
    }
}

async fn process() -> Case {
    let consumer = Place::usual().consumer("processor", "cg1").await?;
    let processor = EventProcessor::builder()
        .with_update_interval(Span::seconds(1))
        .with_partition_expiration_duration(Span::seconds(10))
        .with_start_positions(StartPositions { default: earliest(), ..Default::default() })
        .build(consumer, Arc::new(Store::new(BOX)?))
        .await?;
    let clients = async {
        while let Ok(client) = processor.next_partition_client().await {
            tokio::task::spawn_local(process_partition(client));
        }
    };
    // Its streams are not Send, so the partitions share a thread.
    let local = LocalSet::new();
    let running = local.run_until(async {
        tokio::select! { end = processor.run() => end, () = clients => Ok(()) }
    });
    Ok(running.await?)
}

/// Ends when the partition goes to another process.
async fn process_partition(client: Arc<PartitionClient>) {
    {
        let mut events = client.stream_events();
        let mut count = 0;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let _ = writeln!(std::io::stdout(), "{} {}", client.get_partition_id(), text_of(&event));
                    count += 1;
                    if count % 10 == 0
                        && let Err(error) = client.update_checkpoint(&event).await
                    {
                        eprintln!("checkpoint {}: {error}", client.get_partition_id());
                    }
                }
                Err(error) => eprintln!("partition {}: {error}", client.get_partition_id()),
            }
        }
    }
    if let Some(client) = Arc::into_inner(client) {
        let _ = client.close().await;
    }
}

/// What the processes have said.
#[derive(Default)]
struct Heard {
    parts: HashMap<usize, HashSet<String>>, // partitions that each has processed events of
    bodies: HashMap<String, usize>,
}

#[derive(Default)]
struct Fleet {
    members: Vec<Child>,
    heard: Arc<Mutex<Heard>>,
}

impl Fleet {
    fn add(&mut self) -> Case {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("processor").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let Some(out) = child.stdout.take() else {
            return Err(Outcome::Fail("a process without its output".into()));
        };
        tokio::spawn(listen(out, self.members.len(), self.heard.clone()));
        self.members.push(child);
        Ok(())
    }

    fn events(&self) -> usize {
        self.heard.lock().unwrap().bodies.len()
    }

    fn busy(&self) -> usize {
        self.heard.lock().unwrap().parts.len()
    }
}

async fn listen(out: ChildStdout, member: usize, heard: Arc<Mutex<Heard>>) {
    let mut lines = BufReader::new(out).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let (id, body) = line.split_once(' ').unwrap_or_default();
        let mut heard = heard.lock().unwrap();
        heard.parts.entry(member).or_default().insert(id.into());
        *heard.bodies.entry(body.into()).or_default() += 1;
    }
}

/// Sends numbers in tens, one partition after another, until there are so many.
async fn send_up_to(p: &ProducerClient, sent: &mut usize, end: usize) -> Case {
    while *sent < end {
        send_numbers(p, IDS[*sent / 10 % 4], *sent, *sent + 9).await?;
        *sent += 10;
    }
    Ok(())
}

pub async fn processor(run: &mut Run) -> Case {
    if stand("BLOB").is_empty() {
        return Err(Outcome::Skipped("there is no Azurite".into()));
    }
    let since = Instant::now();
    Store::new(BOX)?.create().await?;
    let p = Place::usual().producer(&run.hub).await?;
    let mut all = Fleet::default();
    for _ in 0..3 {
        all.add()?;
    }
    // A few events again and again, until every process has got some, so that all have a partition.
    let mut sent = 0;
    while all.busy() < 3 {
        check!(since.elapsed() < Duration::from_secs(60), "{} of 3 processes have a partition", all.busy());
        if sent < 2000 {
            let end = sent + 40;
            send_up_to(&p, &mut sent, end).await?;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    send_up_to(&p, &mut sent, 2000).await?;
    until(60, "2,000 events", || all.events() == 2000).await?;
    all.members[0].kill().await?;
    send_up_to(&p, &mut sent, 4000).await?;
    let done = until(90, "4,000 events", || all.events() == 4000).await;
    done.map_err(|e| e.during(&format!("{} events came", all.events())))?;
    check!(since.elapsed() < Duration::from_secs(120), "it took {:?}", since.elapsed());
    let times: usize = all.heard.lock().unwrap().bodies.values().sum();
    run.note(format!("4,000 events, {} of them again; with a checkpoint store of the test's own", times - 4000));
    Ok(())
}
