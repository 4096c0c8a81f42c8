// send.mjs - properties, and every way to send.
import { bodies, check, lacks, load, numbered, pause, range, refused, same } from "./frame.mjs";

const ids = ["0", "1", "2", "3"];

async function properties(client) {
  const producer = client.producer();
  const hub = await producer.hub();
  same("hub", [hub.name, hub.ids], ["properties", ids]);
  check(Math.abs(Date.now() - hub.created) < 3600e3, `created ${hub.created}`);
  const empty = await producer.partition("2");
  same("an empty partition", [empty.empty ?? true, empty.last], [true, -1]);
  await producer.send(numbered(0, 3), { partition: "1" });
  const full = await producer.partition("1");
  same("a full partition", [full.empty ?? false, full.first, full.last], [false, 0, 2]);
  const last = (await client.reader({ partition: "1" }).has(3))[2];
  same("its last event", [full.offset, full.time], [String(last.offset), last.time]);
}

const marked = (list) => list.map((body, n) => ({ body, properties: { n, text: `text of ${body}` } }));

function sameEvents(got, sent) {
  same("events", got.map(({ body, properties }) => ({ body, properties })), sent);
}

async function sendList(client) {
  const sent = marked(["a", "b", "c"]), producer = client.producer();
  await producer.send(sent);
  await producer.send([{ body: "one" }]);
  const got = await client.reader().has(4);
  sameEvents(got.filter((event) => event.body !== "one"), sent);
  same("partitions", new Set(got.filter((event) => event.body !== "one").map((event) => event.partition)).size, 1);
}

async function sendBatch(client) {
  if (client.id === "js-old") lacks(/createBatch|tryAdd|maxSize/i, load("@azure/event-hubs").EventHubClient);
  const producer = client.producer().client, batch = await producer.createBatch({ partitionId: "0" });
  const body = (n) => Buffer.from(`event ${n} `.padEnd(10000, "x"));
  while (batch.tryAdd({ body: body(batch.count) })) check(batch.count < 200, "it is never full");
  check(batch.count >= 90, `${batch.count} events fill a batch`);
  await producer.sendBatch(batch);
  const got = await client.reader({ partition: "0" }).has(batch.count);
  same("bodies", bodies(got).map(String), range(0, batch.count).map((n) => String(body(n))));
  return { text: `${batch.count} events` };
}

async function sendPartition(client) {
  const producer = client.producer();
  for (const partition of ids) await producer.send(marked([partition, "x", "y"]), { partition });
  for (const partition of ids) sameEvents(await client.reader({ partition }).has(3), marked([partition, "x", "y"]));
}

async function sendKey(client) {
  const producer = client.producer();
  for (const n of range(0, 100)) await producer.send([{ body: n }], { key: `key ${n % 10}` });
  const got = await client.reader().has(100);
  same("events", bodies(got).sort((a, b) => a - b), range(0, 100));
  same("keys", got.map((event) => event.partitionKey), bodies(got).map((n) => `key ${n % 10}`));
  for (const k of range(0, 10)) {
    const mine = got.filter((event) => event.body % 10 === k);
    same(`partitions of key ${k}`, new Set(mine.map((event) => event.partition)).size, 1);
    same(`order of key ${k}`, bodies(mine), range(0, 10).map((n) => 10 * n + k));
  }
}

// Numbers are of one kind. The newer client gives times back as milliseconds and bytes as an object of
// numbers: that is its convertDatesToNumbers.
async function sendIds(client) {
  const properties = {
    text: "ä", int: 7, long: 2 ** 40, double: 0.5, bool: true, bytes: Buffer.from([0, 255]),
    time: new Date(1700000000123),
  };
  const sent = { body: "b", messageId: "message", correlationId: "correlation", contentType: "text/plain", properties };
  await client.producer().send([sent], { partition: "0" });
  const [got] = await client.reader({ partition: "0" }).has(1);
  const { bytes, time, ...others } = got.properties;
  same("bytes and time", [Object.values(bytes), Number(time)], [[0, 255], 1700000000123]);
  for (const name of Object.keys(others)) same(name, others[name], properties[name]);
  for (const name of ["body", "messageId", "correlationId", "contentType"]) same(name, got[name], sent[name]);
}

async function sizeBelow(client) {
  const body = Buffer.from(Uint8Array.from(range(0, 1000000), (n) => n % 251));
  await client.producer().send([{ body }], { partition: "0" });
  const [got] = await client.reader({ partition: "0" }).has(1);
  check(body.equals(got.body), "another body came back");
}

async function sizeAbove(client) {
  const producer = client.producer();
  const large = producer.send([{ body: Buffer.alloc(1100000, 1) }], { partition: "0" });
  const seen = await refused(large, /too ?large|size-exceeded|larger than|exceeds? the limit/i);
  await producer.send([{ body: "small" }], { partition: "0" });
  same("afterwards", bodies(await client.reader({ partition: "0" }).has(1)), ["small"]);
  return { text: seen.text };
}

// Whether the client has a buffered producer at all.
const oldClasses = () => [load("@azure/event-hubs").EventHubClient, load("@azure/event-processor-host").EventProcessorHost];

async function throughBuffer(client, options) {
  const lost = [];
  const producer = client.buffered({
    onSendEventsErrorHandler: ({ error }) => lost.push(error.message),
    ...options,
  });
  for (const event of numbered(0, 1000)) await producer.enqueueEvent(event);
  await producer.flush();
  same("lost", lost, []);
  const reader = client.reader();
  await reader.has(1000);
  await pause(0.5); // for what may come twice
  same("events", bodies(reader.events).sort((a, b) => a - b), range(0, 1000));
}

async function buffered(client) {
  if (client.id === "js-old") lacks(/buffer|enqueue|flush/i, ...oldClasses());
  await throughBuffer(client, {});
}

async function idempotent(client) {
  if (client.id === "js-old") lacks(/idempotent|publishing|ownerLevel/i, ...oldClasses());
  await throughBuffer(client, { enableIdempotentRetries: true });
  return { text: "through the buffered producer, which alone has the option; it does not tell the numbers" };
}

export const cases = {
  properties, "send-list": sendList, "send-batch": sendBatch, "send-partition": sendPartition, "send-key": sendKey,
  "send-ids": sendIds, "size-below": sizeBelow, "size-above": sizeAbove, buffered, idempotent,
};
