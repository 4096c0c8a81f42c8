// hub.mjs - an Event Hub in memory, served by rhea: $cbs, $management, senders and receivers, over
// TCP or inside a WebSocket. It knows what our client needs and notes what it saw.
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import rhea from "rhea";
import { WebSocketServer } from "ws";

const { message: codec, types } = rhea;
const KEY = "SAS_KEY_VALUE";
const PATH = "/$servicebus/websocket";
const BATCH_FORMAT = 0x80013700;

// Whether the token was made with the key, for what it says, and has time left.
function isGood(token) {
  const [kind, fields] = token.split(" ");
  const of = Object.fromEntries(fields.split("&").map((f) => f.split("=")));
  const mac = createHmac("sha256", KEY).update(`${of.sr}\n${of.se}`).digest("base64");
  return kind === "SharedAccessSignature" && decodeURIComponent(of.sig) === mac && Number(of.se) > Date.now() / 1000;
}

// From "amqp.annotation.x-opt-NAME > 'VALUE'": the index of the first event. Offsets are indexes.
function first(selector) {
  const [, , equal, value] = /^amqp\.annotation\.x-opt-(offset|sequence-number) >(=?) '(-?\d+)'$/.exec(selector);
  return Number(value) + (equal ? 0 : 1);
}

export class Hub {
  constructor({ websocket = false, partitions = 2 } = {}) {
    this.websocket = websocket;
    this.log = Array.from({ length: partitions }, () => []);
    this.readers = new Set();
    this.tokens = []; // { audience, good }
    this.batches = []; // { format, count, key }
    this.selectors = [];
    this.hostnames = [];
    this.protocols = [];
    this.errors = [];
    this.refusal = undefined; // of every batch
    this.cutAfter = Infinity; // events, then their connection is closed
    this.container = rhea.create_container({ id: "rhea" });
    this.container.sasl_server_mechanisms.enable_anonymous();
    this.container.sasl_server_mechanisms.MSSBCBS = this.container.sasl_server_mechanisms.ANONYMOUS;
    this.listen();
  }

  listen() {
    const { container } = this;
    container.on("connection_open", ({ connection }) => this.hostnames.push(connection.remote.open.hostname));
    container.on("receiver_open", ({ receiver }) => receiver.set_target({ address: receiver.target.address }));
    container.on("sender_open", ({ sender }) => this.open(sender));
    container.on("sendable", () => this.pump());
    container.on("sender_close", ({ sender }) => this.leave((r) => r.sender === sender));
    container.on("disconnected", ({ connection }) => this.leave((r) => r.sender.connection === connection));
    container.on("message", (context) => this.take(context));
    for (const name of ["connection_error", "session_error", "receiver_error", "sender_error", "protocol_error", "error"])
      container.on(name, (what) => this.errors.push(`${name}: ${what.message ?? what}`));
  }

  async start() {
    const options = { host: "127.0.0.1", port: 0, receiver_options: { autoaccept: false } };
    if (this.websocket) {
      this.server = createServer();
      this.door = new WebSocketServer({ server: this.server, path: PATH });
      this.door.on("connection", (socket) => {
        this.protocols.push(socket.protocol);
        this.container.websocket_accept(socket, options);
      });
      this.server.listen(options);
    } else {
      this.server = this.container.listen(options);
    }
    await once(this.server, "listening");
    const ws = this.websocket ? ";TransportType=AmqpWebSockets" : "";
    this.string = `Endpoint=sb://localhost:${this.server.address().port};SharedAccessKeyName=me;` +
      `SharedAccessKey=${KEY};UseDevelopmentEmulator=true${ws}`;
    return this;
  }

  stop() {
    for (const socket of this.door?.clients ?? []) socket.terminate();
    this.server.close();
  }

  // A link on which the client hears us: a desk's answers, or a partition's events.
  open(sender) {
    const { address, filter } = sender.source;
    sender.set_source({ address });
    sender.set_target({ address: sender.target.address });
    if (address.startsWith("$")) {
      (sender.connection.answers ??= {})[sender.target.address] = sender;
      return;
    }
    const selector = filter["apache.org:selector-filter:string"].value;
    this.selectors.push(selector);
    this.readers.add({ sender, log: this.log[Number(address.split("/").pop())], next: first(selector) });
  }

  leave(who) {
    for (const reader of this.readers) if (who(reader)) this.readers.delete(reader);
  }

  pump() {
    for (const reader of this.readers)
      while (this.readers.has(reader) && reader.sender.sendable() && reader.next < reader.log.length) {
        reader.sender.send(reader.log[reader.next++]);
        if (--this.cutAfter === 0) this.cut(reader.sender.connection);
      }
  }

  cut(connection) {
    this.leave((r) => r.sender.connection === connection);
    connection.close({ condition: "amqp:connection:forced", description: "a test" });
  }

  take(context) {
    const { address } = context.receiver.target;
    if (address === "$cbs") this.claim(context);
    else if (address === "$management") this.tell(context);
    else this.store(context, address);
  }

  answer({ connection, message, delivery }, status, description, body) {
    delivery.accept();
    connection.answers[message.reply_to].send({
      correlation_id: message.message_id, body,
      application_properties: { "status-code": status, "status-description": description },
    });
  }

  claim(context) {
    const { name: audience, operation, type } = context.message.application_properties;
    const good = operation === "put-token" && type === "servicebus.windows.net:sastoken" && isGood(context.message.body);
    this.tokens.push({ audience, good });
    this.answer(context, good ? 202 : 401, good ? "Accepted" : "InvalidSignature");
  }

  tell(context) {
    const { name, partition, type } = context.message.application_properties;
    const log = this.log[Number(partition)], last = log?.at(-1)?.message_annotations;
    this.answer(context, 200, "OK", type === "com.microsoft:eventhub"
      ? { name, created_at: types.wrap_timestamp(Date.now()), partition_count: this.log.length,
          partition_ids: this.log.map((_, i) => String(i)) }
      : { name, partition, begin_sequence_number: types.wrap_long(0), is_partition_empty: !last,
          last_enqueued_sequence_number: types.wrap_long(log.length - 1),
          last_enqueued_offset: last?.["x-opt-offset"] ?? "-1",
          last_enqueued_time_utc: last?.["x-opt-enqueued-time"] ?? types.wrap_timestamp(0) });
  }

  // A batch is a message whose data sections are messages.
  store({ message, format, delivery }, address) {
    const envelope = format === BATCH_FORMAT ? codec.decode(message) : message;
    const events = [envelope.body.content].flat();
    const log = this.log[Number(/Partitions\/(\d+)$/.exec(address)?.[1] ?? 0)];
    this.batches.push({ format, count: events.length, key: envelope.message_annotations?.["x-opt-partition-key"] });
    if (this.refusal) return delivery.reject(this.refusal);
    for (const bytes of events) {
      const event = codec.decode(bytes);
      log.push({ ...event, message_annotations: { ...event.message_annotations,
        "x-opt-sequence-number": types.wrap_long(log.length), "x-opt-offset": String(log.length),
        "x-opt-enqueued-time": types.wrap_timestamp(Date.now()) } });
    }
    delivery.accept();
    this.pump();
  }
}
