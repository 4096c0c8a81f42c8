import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { earliestEventPosition } from "@azure/event-hubs";
import { failure, once, receive, Server } from "./server.mjs";

const start = { startPosition: earliestEventPosition };
let server, hubs = 0;
before(async () => {
  server = await new Server(Array.from({ length: 20 }, (_, i) => `h${i}:4`)).start();
});
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
});

// Each test has a hub of its own.
async function withHub(work) {
  const hub = `h${hubs++}`;
  const producer = server.producer(hub), consumer = server.consumer("$Default", hub);
  try {
    await work(producer, consumer, hub);
  } finally {
    await producer.close();
    await consumer.close();
  }
}

test("bodies of every kind come back as they were", () =>
  withHub(async (producer, consumer) => {
    const bodies = ["text", 42, { a: [1, { b: null }] }, Buffer.from([0, 1, 255]), true, [1, 2]];
    await producer.sendBatch(bodies.map((body) => ({ body })), { partitionId: "0" });
    const got = await receive(consumer, bodies.length, "0", start);
    assert.deepEqual(got.map((e) => e.body), bodies);
    assert.deepEqual(got.map((e) => e.sequenceNumber), bodies.map((_, i) => i));
  }));

test("properties come back as they were", () =>
  withHub(async (producer, consumer) => {
    const event = {
      body: "b", contentType: "text/plain", correlationId: "c1", messageId: "m1",
      properties: { text: "t", number: 7, yes: true, no: false, half: 0.5 },
    };
    await producer.sendBatch([event], { partitionId: "1" });
    const [got] = await receive(consumer, 1, "1", start);
    for (const name of ["body", "contentType", "correlationId", "messageId"])
      assert.equal(got[name], event[name]);
    assert.deepEqual(got.properties, event.properties);
    assert.match(got.offset, /^\d+$/);
    assert.ok(Math.abs(Date.now() - got.enqueuedTimeUtc.getTime()) < 60000);
  }));

test("amqp bodies of data, sequence and value", () =>
  withHub(async (producer, consumer) => {
    await producer.sendBatch([
      { body: "v", bodyType: "value" }, { body: [1, "two"], bodyType: "sequence" },
    ], { partitionId: "0" });
    const got = await receive(consumer, 2, "0", start);
    assert.equal(got[0].body, "v");
    assert.deepEqual(got[1].body, [1, "two"]);
    assert.deepEqual(got.map((e) => e.getRawAmqpMessage().bodyType), ["value", "sequence"]);
  }));

test("a key always leads to the same partition, Azure's", () =>
  withHub(async (producer, consumer, hub) => {
    // Of four partitions, as computed by the service's own hash.
    const places = { a: "0", ab: "1", abc: "1", abcd: "2", alphabet: "2", TheBestParitionEver: "2",
      TheWorstParitionEver: "3", "héllo": "1", "日本語": "1" };
    for (const key of Object.keys(places))
      await producer.sendBatch([{ body: key }, { body: key }], { partitionKey: key });
    const got = await receive(consumer, 2 * Object.keys(places).length, undefined, start);
    for (const event of got) {
      assert.equal(event.partitionKey, event.body);
      assert.equal(event.partition, places[event.body], event.body);
    }
  }));

test("without a key the partitions take turns", () =>
  withHub(async (producer) => {
    for (let i = 0; i < 8; i++) await producer.sendBatch([{ body: i }]);
    for (const id of ["0", "1", "2", "3"])
      assert.equal((await producer.getPartitionProperties(id)).lastEnqueuedSequenceNumber, 1);
  }));

test("a batch as large as may be, and an event that is too large for it", () =>
  withHub(async (producer, consumer) => {
    const batch = await producer.createBatch({ partitionId: "0" });
    assert.equal(batch.maxSizeInBytes, 1048576);
    assert.equal(batch.tryAdd({ body: Buffer.alloc(1048576) }), false);
    let count = 0;
    const body = (i) => Buffer.alloc(10000, 0x80 + i); // not text
    while (batch.tryAdd({ body: body(count) })) count++;
    assert.ok(count > 100);
    await producer.sendBatch(batch);
    const got = await receive(consumer, count, "0", start);
    assert.equal(got.length, count);
    got.forEach((e, i) => assert.ok(body(i).equals(e.body)));
  }));

// How many bytes a message has around the body of its one event.
async function overhead(producer) {
  const error = await failure(producer.sendBatch([{ body: Buffer.alloc(1300000) }], { partitionId: "0" }));
  assert.equal(error.code, "MessageTooLargeError");
  const [, size] = /The received message \(delivery-id:\d+, size:(\d+) bytes\) exceeds the limit \(1048576 bytes\) currently allowed on the link\./.exec(error.message);
  return Number(size) - 1300000;
}

test("a message of exactly the limit, and one byte more: that is rejected, and the link goes on", () =>
  withHub(async (producer, consumer) => {
    const largest = 1048576 - await overhead(producer), body = (size) => Buffer.alloc(size, 0xaa);
    await producer.sendBatch([{ body: body(largest) }], { partitionId: "0" });
    const error = await failure(producer.sendBatch([{ body: body(largest + 1) }], { partitionId: "0" }));
    assert.equal(error.code, "MessageTooLargeError");
    assert.match(error.message, /size:1048577 bytes/);
    await producer.sendBatch([{ body: body(1) }], { partitionId: "0" });
    const got = await receive(consumer, 2, "0", start);
    assert.deepEqual(got.map((e) => e.body.length), [largest, 1]);
    assert.ok(got[0].body.equals(body(largest)));
    assert.equal((await producer.getPartitionProperties("0")).lastEnqueuedSequenceNumber, 1);
  }));

test("sizes around every turn of the encoding and of the frame", () =>
  withHub(async (producer, consumer) => {
    const near = [0, 254, 65534, 131071].flatMap((n) => [n, n + 1, n + 2]);
    const frame = Array.from({ length: 24 }, (_, i) => 65536 - 240 + 10 * i), sizes = [...near, ...frame];
    const body = (i) => Buffer.alloc(sizes[i], 0x80 + i);
    for (let i = 0; i < sizes.length; i++) await producer.sendBatch([{ body: body(i) }], { partitionId: "2" });
    const got = await receive(consumer, sizes.length, "2", start);
    got.forEach((e, i) => assert.ok(body(i).equals(e.body), `${sizes[i]} bytes`));
  }));

test("every form of sending", () =>
  withHub(async (producer, consumer) => {
    const batchOf = async (options, ...bodies) => {
      const batch = await producer.createBatch(options);
      for (const body of bodies) assert.ok(batch.tryAdd({ body }));
      return batch;
    };
    const message = { body: Buffer.from("raw"), bodyType: "data", properties: { subject: "s", to: "t" },
      applicationProperties: { a: 1 }, messageAnnotations: { "x-mine": "kept" } };
    await producer.sendBatch([{ body: "a list" }], { partitionId: "0" });
    await producer.sendBatch([message], { partitionId: "0" });
    await producer.sendBatch(await batchOf({ partitionId: "0" }, "a batch", "of two"));
    await producer.sendBatch(await batchOf({ partitionId: "0", maxSizeInBytes: 300 }, "a small batch"));
    await producer.sendBatch([], { partitionId: "0" }); // nothing is nothing
    const got = await receive(consumer, 5, "0", start);
    assert.deepEqual(got.map((e) => e.body.toString()), ["a list", "raw", "a batch", "of two", "a small batch"]);
    const raw = got[1].getRawAmqpMessage();
    assert.equal(raw.properties.subject, "s");
    assert.equal(raw.properties.to, "t");
    assert.deepEqual(raw.applicationProperties, { a: 1 });
    assert.equal(raw.messageAnnotations["x-mine"], "kept");
    await producer.sendBatch(await batchOf({ partitionKey: "alphabet" }, "k"));
    assert.equal((await receive(consumer, 1, "2", start))[0].partitionKey, "alphabet");
    await producer.sendBatch(await batchOf({}, "r1", "r2")); // round robin, all in one place
    const counts = await Promise.all(["0", "1", "2", "3"].map((id) => producer.getPartitionProperties(id)));
    const sum = counts.reduce((n, p) => n + p.lastEnqueuedSequenceNumber + 1, 0);
    assert.equal(sum, 8);
  }));

test("a batch that is too small for an event says so before it is sent", () =>
  withHub(async (producer) => {
    const batch = await producer.createBatch({ maxSizeInBytes: 100 });
    assert.equal(batch.tryAdd({ body: Buffer.alloc(200) }), false);
    assert.equal(batch.count, 0);
    assert.match((await failure(producer.createBatch({ maxSizeInBytes: 1048577 }))).message, /Max message size/);
  }));

test("1,200 sends at once on one link", () =>
  withHub(async (producer, consumer) => {
    const sends = Array.from({ length: 1200 }, (_, i) =>
      producer.sendBatch([{ body: i }], { partitionId: "3" }));
    await Promise.all(sends);
    const got = await receive(consumer, 1200, "3", { ...start, maxBatchSize: 300 });
    assert.deepEqual(got.map((e) => e.body).sort((a, b) => a - b), sends.map((_, i) => i));
    assert.deepEqual(got.map((e) => e.sequenceNumber), sends.map((_, i) => i));
  }));

test("a partition that is not there", () =>
  withHub(async (producer) => {
    for (const partitionId of ["4", "XYZ", "1000"]) {
      const error = await failure(producer.sendBatch([{ body: 1 }], { partitionId }));
      assert.equal(error.code, "ArgumentOutOfRangeError");
    }
    await producer.sendBatch([{ body: 1 }], { partitionId: "3" });
  }));

// A client that says which producer it is.
const marked = (hub, id, ownerLevel, startingSequenceNumber) =>
  Object.assign(server.producer(hub), { _enableIdempotentRetries: true,
    _partitionOptions: { 0: { ownerLevel, producerGroupId: id, startingSequenceNumber } } });

test("an idempotent producer", () =>
  withHub(async (producer) => {
    const at = { partitionId: "0" };
    producer._enableIdempotentRetries = true; // as the buffered producer does
    assert.equal((await producer.getPartitionPublishingProperties("0")).lastPublishedSequenceNumber, 0);
    const batch = await producer.createBatch(at);
    batch.tryAdd({ body: 1 });
    batch.tryAdd({ body: 2 });
    await producer.sendBatch(batch);
    assert.equal(batch.startingPublishedSequenceNumber, 1);
    await producer.sendBatch([{ body: 3 }], at);
    const p = await producer.getPartitionPublishingProperties("0");
    assert.equal(p.lastPublishedSequenceNumber, 3);
    assert.equal(typeof p.producerGroupId, "number");
    assert.equal((await producer.getPartitionProperties("0")).lastEnqueuedSequenceNumber, 2);
  }));

test("an idempotent producer that comes back, one that is out of order, one that was replaced", () =>
  withHub(async (plain, consumer, hub) => {
    const at = { partitionId: "0" }, first = server.producer(hub);
    first._enableIdempotentRetries = true;
    await first.sendBatch([{ body: "a" }, { body: "b" }], at);
    const { producerGroupId: id, ownerLevel, lastPublishedSequenceNumber: last } =
      await first.getPartitionPublishingProperties("0");
    assert.equal(last, 2);
    await first.close();
    const again = marked(hub, id, ownerLevel, last);
    await again.sendBatch([{ body: "c" }], at);
    const gap = marked(hub, id, ownerLevel, last + 7);
    assert.equal((await failure(gap.sendBatch([{ body: "x" }], at))).code, "SequenceOutOfOrderError");
    const newer = marked(hub, id, ownerLevel + 1, 0);
    await newer.sendBatch([{ body: "d" }], at);
    const error = await failure(again.sendBatch([{ body: "x" }], at));
    assert.equal(error.code, "ProducerDisconnectedError");
    assert.match(error.message, /Received:0 Current:1/);
    const late = marked(hub, id, ownerLevel, 0); // is not let in; the client has no code for that
    assert.match((await failure(late.sendBatch([{ body: "x" }], at))).message, /Received:0 Current:1/);
    for (const client of [again, gap, newer, late]) await client.close();
    assert.deepEqual((await receive(consumer, 4, "0", start)).map((e) => e.body), ["a", "b", "c", "d"]);
  }));

test("an idempotent producer that sends the same again: it is there once", () =>
  withHub(async (plain, consumer, hub) => {
    const at = { partitionId: "0" }, first = server.producer(hub);
    first._enableIdempotentRetries = true;
    await first.sendBatch([{ body: "a" }, { body: "b" }], at);
    const { producerGroupId: id } = await first.getPartitionPublishingProperties("0");
    const twin = marked(hub, id, 0, 0); // does not know that its answer was lost
    await twin.sendBatch([{ body: "a" }, { body: "b" }], at);
    await twin.sendBatch([{ body: "c" }], at);
    assert.equal((await plain.getPartitionProperties("0")).lastEnqueuedSequenceNumber, 2);
    assert.deepEqual((await receive(consumer, 3, "0", start)).map((e) => e.body), ["a", "b", "c"]);
    await first.close();
    await twin.close();
  }));

test("an idempotent producer with a negative state", () =>
  withHub(async (plain, consumer, hub) => {
    for (const [id, ownerLevel, sequence] of [[-1, 0, 0], [1, -1, 0], [1, 0, -1]]) {
      const client = marked(hub, id, ownerLevel, sequence);
      const error = await failure(client.sendBatch([{ body: 1 }], { partitionId: "0" }));
      assert.equal(error.code, "ArgumentOutOfRangeError");
      assert.match(error.message, /Invalid range for idempotent producer state/);
      await client.close();
    }
  }));

test("the buffered producer", async () => {
  const hub = `h${hubs++}`;
  const consumer = server.consumer("$Default", hub);
  const buffered = server.buffered(hub, {
    ...once, maxWaitTimeInMs: 50, onSendEventsErrorHandler: async ({ error }) => { throw error; } });
  for (let i = 0; i < 500; i++) await buffered.enqueueEvent({ body: i }, { partitionKey: `k${i % 7}` });
  await buffered.close();
  const got = await receive(consumer, 500, undefined, { ...start, maxBatchSize: 100 });
  for (let k = 0; k < 7; k++) {
    const mine = got.filter((e) => e.body % 7 === k);
    assert.equal(new Set(mine.map((e) => e.partition)).size, 1);
    assert.deepEqual(mine.map((e) => e.body), [...mine.map((e) => e.body)].sort((a, b) => a - b));
  }
  assert.equal(new Set(got.map((e) => e.body)).size, 500);
  await consumer.close();
});

test("the buffered producer: flush, one partition, what was sent", async () => {
  const hub = `h${hubs++}`, sent = [], failed = [];
  const consumer = server.consumer("$Default", hub);
  const buffered = server.buffered(hub, {
    ...once, maxWaitTimeInMs: 100, maxEventBufferLengthPerPartition: 100, enableIdempotentRetries: true,
    onSendEventsSuccessHandler: async ({ events, partitionId }) => { sent.push([partitionId, events.length]); },
    onSendEventsErrorHandler: async ({ error }) => { failed.push(error); } });
  const events = Array.from({ length: 250 }, (_, i) => ({ body: i }));
  await buffered.enqueueEvents(events, { partitionId: "3" });
  await buffered.flush();
  assert.deepEqual(failed, []);
  assert.ok(sent.every(([partition]) => partition === "3"));
  assert.equal(sent.reduce((sum, [, count]) => sum + count, 0), 250);
  const got = await receive(consumer, 250, "3", { ...start, maxBatchSize: 250 });
  assert.deepEqual(got.map((e) => e.body), events.map((e) => e.body));
  await buffered.close();
  await consumer.close();
});
