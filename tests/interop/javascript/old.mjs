// old.mjs - the client "js-old", @azure/event-hubs 2.
//
// It knows connections with TLS to port 5671 and WebSockets to port 443 only, and has no option for
// another port. So the port is changed in the connection that it has made and not yet opened, and in
// the class of its WebSockets, which is an option. Nothing else of it is touched.
import { Absent, credentials, load, Reader, stand } from "./frame.mjs";

const hubs = load("@azure/event-hubs");

export const prefetch = 1000;

// Where a connection goes. The server that is killed has no port with TLS.
export function aim(client, { crash = false } = {}) {
  const { options } = client._context.connection._connection;
  options.port = stand("AMQPS");
  if (crash) {
    options.port = /localhost:(\d+)/.exec(stand("CRASH_STRING"))[1];
    options.transport = "tcp";
  }
  return client;
}

function webSocket() {
  const WebSocket = load("ws");
  return class extends WebSocket {
    constructor(url, ...more) {
      super(url.replace(":443/", `:${stand("HTTPS")}/`), ...more);
    }
  };
}

export const connectionString = (key = credentials(stand("STRING"))) => `Endpoint=sb://localhost/;${key}`;

function connect(hub, road = {}, options = {}) {
  if (road.via === "emulator")
    throw new Absent("it knows no UseDevelopmentEmulator: ConnectionContextBase.create has transport TLS, port 5671");
  const more = road.via === "websocket" ? { webSocket: webSocket() } : {};
  return aim(hubs.EventHubClient.createFromConnectionString(connectionString(road.key), hub, { ...options, ...more }), road);
}

function position(from) {
  const { EventPosition } = hubs;
  if (from === "earliest") return EventPosition.fromStart();
  if (from === "latest") return EventPosition.fromEnd();
  if (from.offset !== undefined) return EventPosition.fromOffset(from.offset, from.inclusive);
  if (from.sequence !== undefined) return EventPosition.fromSequenceNumber(from.sequence, from.inclusive);
  return EventPosition.fromEnqueuedTime(from.time);
}

// The newer client's names, which the cases use, into its own.
function own({ body, properties, messageId, correlationId, contentType }, partitionKey) {
  const ids = { message_id: messageId, correlation_id: correlationId, content_type: contentType };
  const given = Object.entries(ids).filter(([, value]) => value !== undefined);
  return {
    body, partitionKey, applicationProperties: properties,
    properties: given.length ? Object.fromEntries(given) : undefined,
  };
}

function plain(event, partition) {
  const { message_id: messageId, correlation_id: correlationId, content_type: contentType } = event.properties ?? {};
  return {
    body: event.body, properties: event.applicationProperties, messageId, correlationId, contentType,
    partitionKey: event.partitionKey, partition,
    sequence: event.sequenceNumber, offset: event.offset, time: event.enqueuedTimeUtc, event,
  };
}

class OldReader extends Reader {
  constructor(client, { partition, from = "earliest", epoch, metrics, group }) {
    super();
    this.client = client;
    const options = {
      eventPosition: position(from), consumerGroup: group, epoch, enableReceiverRuntimeMetric: metrics,
    };
    for (const id of partition === undefined ? ["0", "1", "2", "3"] : [partition])
      this.handler = client.receive(id, (event) => this.take([plain(event, id)]),
        (error) => this.errors.push(error), options);
  }

  // As the last event told.
  get last() {
    const { lastSequenceNumber, lastEnqueuedOffset, lastEnqueuedTimeUtc, retrievalTime } = this.handler.runtimeInfo;
    return {
      sequenceNumber: lastSequenceNumber, offset: lastEnqueuedOffset, enqueuedOn: lastEnqueuedTimeUtc,
      retrievedOn: retrievalTime,
    };
  }

  close() {
    return this.client.close();
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

  producer(road, hub = this.hub, options = {}) {
    const client = this.keep(connect(hub, road, options));
    return {
      client,
      send: (events, { partition, key } = {}) =>
        events.length === 1 ? client.send(own(events[0], key), partition)
          : client.sendBatch(events.map((event) => own(event, key)), partition),
      hub: async () => {
        const seen = await client.getHubRuntimeInformation();
        return { name: seen.path, ids: seen.partitionIds, created: seen.createdAt };
      },
      partition: async (id) => {
        const seen = await client.getPartitionInformation(id);
        return {
          first: seen.beginningSequenceNumber, last: seen.lastSequenceNumber,
          offset: String(seen.lastEnqueuedOffset), time: seen.lastEnqueuedTimeUtc,
        };
      },
    };
  }

  reader({ road, hub = this.hub, transformer, ...options } = {}) {
    const client = connect(hub, road, transformer ? { dataTransformer: transformer } : {});
    return this.keep(new OldReader(client, options));
  }
}
