// processor.mjs CLIENT - one process of a client's own processor, its checkpoints in blobs. It prints
// partition and body of each event, and checkpoints every 50th of a partition.
import { load, stand } from "./frame.mjs";
import { CONTAINER, EVERY, HUB, GROUP } from "./leases.mjs";

// The clients' own times, 30 s and more, are too long for a test.
const BALANCE_S = 2, EXPIRE_S = 15;

const due = (event) => event.sequenceNumber % EVERY === EVERY - 1;
const say = (partition, event) => process.stdout.write(`${partition} ${event.body}\n`);
const complain = ({ message, error, action }) => // the older client says what it was doing
  console.error(`processor ${process.pid}: ${action ?? ""} ${message ?? error?.stack}`);

async function runNew() {
  const { EventHubConsumerClient, earliestEventPosition } = load("@azure/event-hubs");
  const { BlobCheckpointStore } = load("@azure/eventhubs-checkpointstore-blob");
  const { ContainerClient } = load("@azure/storage-blob");
  const container = new ContainerClient(stand("BLOB"), CONTAINER);
  await container.createIfNotExists();
  const times = { updateIntervalInMs: BALANCE_S * 1000, partitionOwnershipExpirationIntervalInMs: EXPIRE_S * 1000 };
  const client = new EventHubConsumerClient(GROUP, stand("STRING"), HUB, new BlobCheckpointStore(container),
    { loadBalancingOptions: times });
  client.subscribe({
    processEvents: async (events, context) => {
      for (const event of events) {
        say(context.partitionId, event);
        if (due(event)) await context.updateCheckpoint(event);
      }
    },
    processError: async (error) => complain(error),
  }, { startPosition: earliestEventPosition, maxBatchSize: 100 });
}

async function runOld() {
  const { EventProcessorHost } = load("@azure/event-processor-host");
  const { aim, connectionString } = await import("./old.mjs");
  const host = EventProcessorHost.createFromConnectionString(
    EventProcessorHost.createHostName(), stand("BLOB"), CONTAINER, connectionString(),
    {
      eventHubPath: HUB, consumerGroup: GROUP, onEphError: complain,
      leaseDuration: EXPIRE_S, leaseRenewInterval: EXPIRE_S / 3, startupScanDelay: BALANCE_S, slowScanInterval: BALANCE_S,
    });
  const { getEventHubClient } = host._context;
  host._context.getEventHubClient = () => aim(getEventHubClient());
  await host.start(async (context, event) => {
    say(context.partitionId, event);
    if (due(event)) await context.checkpointFromEventData(event).catch(complain);
  }, complain);
  await describeLeases();
}

// Azure's storage lists a blob without metadata with an empty element for them; Azurite leaves the element
// out, and then the older client cannot read the list. So new leases are given the owner that they have
// not got yet. One that has an owner meanwhile is left alone.
async function describeLeases() {
  const service = load("azure-storage").createBlobService(stand("BLOB"));
  const call = (method, ...args) => new Promise((resolve, reject) =>
    service[method](CONTAINER, ...args, (error, result) => (error ? reject(error) : resolve(result))));
  for (const partition of ["0", "1", "2", "3"]) {
    const blob = `${GROUP}/${partition}`, { metadata } = await call("getBlobMetadata", blob);
    if (metadata?.owninghost) continue;
    await call("setBlobMetadata", blob, { owninghost: "nobody" }).catch((error) => {
      if (error.code !== "LeaseIdMissing") throw error;
    });
  }
}

process.stdin.on("end", () => process.exit()).resume();
await (process.argv[2] === "js" ? runNew() : runOld());
