import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { earliestEventPosition, EventHubBufferedProducerClient } from "@azure/event-hubs";
import { failure, once, receive, Server } from "./server.mjs";

const start = { startPosition: earliestEventPosition };
let server, hubs = 0;
before(async () => {
  server = await new Server(Array.from({ length: 12 }, (_, i) => `h${i}:4`)).start();
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

test("what is too large is rejected, and the link goes on", () =>
  withHub(async (producer) => {
    const error = await failure(
      producer.sendBatch([{ body: Buffer.alloc(1300000) }], { partitionId: "0" }));
    assert.equal(error.code, "MessageTooLargeError");
    assert.match(error.message, /The received message \(delivery-id:\d+, size:\d+ bytes\) exceeds the limit \(1048576 bytes\) currently allowed on the link\./);
    await producer.sendBatch([{ body: "small" }], { partitionId: "0" });
    assert.equal((await producer.getPartitionProperties("0")).lastEnqueuedSequenceNumber, 0);
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

test("the buffered producer", async () => {
  const hub = `h${hubs++}`;
  const consumer = server.consumer("$Default", hub);
  const buffered = new EventHubBufferedProducerClient(server.connectionString, hub, {
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
