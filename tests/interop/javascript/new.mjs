// new.mjs - the client "js", @azure/event-hubs 6.
import { credentials, load, Reader, stand } from "./frame.mjs";

const hubs = load("@azure/event-hubs");

export const prefetch = 3; // of a subscription with the default batches of one event

// The connection string and options for a way to the server; its key may be another one.
function place({ via = "emulator", key, crash = false, retryOptions } = {}) {
  const mine = key ?? credentials(stand("STRING"));
  const plain = crash ? stand("CRASH_STRING") : stand("STRING").replace(credentials(stand("STRING")), mine);
  if (via === "emulator") return [plain, { retryOptions }];
  const port = via === "tls" ? stand("AMQPS") : stand("HTTPS");
  const options = { retryOptions, customEndpointAddress: `sb://localhost:${port}` };
  if (via === "websocket") options.webSocketOptions = { webSocket: load("ws") };
  return [`Endpoint=sb://localhost/;${mine}`, options];
}

function position(from) {
  if (from === "earliest") return hubs.earliestEventPosition;
  if (from === "latest") return hubs.latestEventPosition;
  const { offset, sequence, time, inclusive } = from;
  const place = { offset, sequenceNumber: sequence, enqueuedOn: time, isInclusive: inclusive };
  return Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined));
}

// What the cases look at.
function plain(event, partition) {
  const { body, properties, messageId, correlationId, contentType, partitionKey } = event;
  return {
    body, properties, messageId, correlationId, contentType, partitionKey, partition,
    sequence: event.sequenceNumber, offset: event.offset, time: event.enqueuedTimeUtc, event,
  };
}

class NewReader extends Reader {
  constructor(client, { partition, from = "earliest", epoch, metrics, batch }) {
    super();
    this.client = client;
    const handlers = {
      processEvents: async (events, context) => {
        this.take(events.map((event) => plain(event, context.partitionId)));
        this.last = context.lastEnqueuedEventProperties;
      },
      processError: async (error) => { this.errors.push(error); },
    };
    const options = { startPosition: position(from), trackLastEnqueuedEventProperties: metrics };
    if (epoch !== undefined) options.ownerLevel = epoch;
    if (batch) options.maxBatchSize = batch;
    this.subscription = partition === undefined ? client.subscribe(handlers, options)
      : client.subscribe(partition, handlers, options);
  }

  async close() {
    await this.subscription.close();
    await this.client.close();
  }
}

export class Client {
  constructor(hub) {
    this.hub = hub;
    this.open = [];
  }

  keep(thing) {
    this.open.push(thing);
    return thing;
  }

  async close() {
    for (const thing of this.open.reverse()) await thing.close();
  }

  producer(road, hub = this.hub) {
    const [string, options] = place(road);
    const client = this.keep(new hubs.EventHubProducerClient(string, hub, options));
    return {
      client,
      // A list, without a batch of the program's own.
      send: (events, { partition, key, signal } = {}) =>
        client.sendBatch(events, { partitionId: partition, partitionKey: key, abortSignal: signal }),
      hub: async () => {
        const seen = await client.getEventHubProperties();
        return { name: seen.name, ids: seen.partitionIds, created: seen.createdOn };
      },
      partition: async (id) => {
        const seen = await client.getPartitionProperties(id);
        return {
          empty: seen.isEmpty, first: seen.beginningSequenceNumber, last: seen.lastEnqueuedSequenceNumber,
          offset: String(seen.lastEnqueuedOffset), time: seen.lastEnqueuedOnUtc,
        };
      },
    };
  }

  buffered(options) {
    return this.keep(new hubs.EventHubBufferedProducerClient(stand("STRING"), this.hub, options));
  }

  reader({ road, group = "$Default", hub = this.hub, ...options } = {}) {
    const [string, more] = place(road);
    return this.keep(new NewReader(new hubs.EventHubConsumerClient(group, string, hub, more), options));
  }
}
