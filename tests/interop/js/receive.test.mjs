import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { earliestEventPosition, latestEventPosition } from "@azure/event-hubs";
import { failure, receive, Server, until } from "./server.mjs";

const COUNT = 10;
let server, producer, consumer, events;
before(async () => {
  server = await new Server().start();
  producer = server.producer();
  consumer = server.consumer("cg1");
  for (let i = 0; i < COUNT; i++) {
    await producer.sendBatch([{ body: i }], { partitionId: "0" });
    await new Promise((resolve) => setTimeout(resolve, 3)); // so that times differ
  }
  events = await receive(consumer, COUNT, "0", { startPosition: earliestEventPosition });
});
after(async () => {
  await producer.close();
  await consumer.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});

const bodies = (list) => list.map((e) => e.body);
const from = (first) => Array.from({ length: COUNT - first }, (_, i) => first + i);

async function startsAt(startPosition, first) {
  const got = await receive(consumer, COUNT - first, "0", { startPosition });
  assert.deepEqual(bodies(got), from(first));
}

test("from the earliest", () => startsAt(earliestEventPosition, 0));
test("behind a sequence number", () => startsAt({ sequenceNumber: 3 }, 4));
test("at a sequence number", () => startsAt({ sequenceNumber: 3, isInclusive: true }, 3));
test("behind sequence number -1", () => startsAt({ sequenceNumber: -1 }, 0));
test("behind an offset", () => startsAt({ offset: events[4].offset }, 5));
test("at an offset", () => startsAt({ offset: events[4].offset, isInclusive: true }, 4));
test("behind offset -1, and at it", async () => {
  await startsAt({ offset: "-1" }, 0);
  await startsAt({ offset: "-1", isInclusive: true }, 0);
});
test("at sequence number 0, and behind it", async () => {
  await startsAt({ sequenceNumber: 0, isInclusive: true }, 0);
  await startsAt({ sequenceNumber: 0 }, 1);
});
test("at the last", async () => {
  await startsAt({ sequenceNumber: COUNT - 1, isInclusive: true }, COUNT - 1);
  await startsAt({ offset: events[COUNT - 1].offset, isInclusive: true }, COUNT - 1);
});
test("behind a time", () => startsAt({ enqueuedOn: events[5].enqueuedTimeUtc }, 6));
test("behind a time between two", () => startsAt({ enqueuedOn: events[5].enqueuedTimeUtc.getTime() - 1 }, 5));
test("before all times", () => startsAt({ enqueuedOn: 1 }, 0));

// What there is nothing behind: the next event to come is the first.
for (const [name, position] of Object.entries({
  "the last sequence number": (last) => ({ sequenceNumber: last.lastEnqueuedSequenceNumber }),
  "the last offset": (last) => ({ offset: last.lastEnqueuedOffset }),
  "the last time": (last) => ({ enqueuedOn: last.lastEnqueuedOnUtc }),
  "a time to come": () => ({ enqueuedOn: Date.now() + 3600000 }),
  "the latest": () => latestEventPosition,
}))
  test(`behind ${name}: only what comes after`, async () => {
    const other = server.consumer(), got = [];
    await producer.sendBatch([{ body: "old" }], { partitionId: "1" });
    const startPosition = position(await producer.getPartitionProperties("1"));
    let ready;
    const attached = new Promise((resolve) => { ready = resolve; });
    const subscription = other.subscribe("1", {
      // The first call, empty after a second, means that the link is there.
      processEvents: async (list) => { got.push(...list); ready(); },
      processError: async (error) => { throw error; },
    }, { startPosition, maxWaitTimeInSeconds: 1 });
    await attached;
    assert.equal(got.length, 0);
    await producer.sendBatch([{ body: "new" }], { partitionId: "1" });
    await until(() => got.length > 0);
    assert.deepEqual(bodies(got), ["new"]);
    await subscription.close();
    await other.close();
  });

test("each partition from a position of its own", async () => {
  const other = server.consumer();
  await producer.sendBatch([{ body: "a" }, { body: "b" }, { body: "c" }], { partitionId: "2" });
  const got = await receive(other, 2 + COUNT - 8, undefined, { startPosition: {
    0: { sequenceNumber: 7 }, 1: latestEventPosition, 2: { sequenceNumber: 1, isInclusive: true },
    3: latestEventPosition } });
  const of = (id) => bodies(got.filter((e) => e.partition === id));
  assert.deepEqual([of("0"), of("2")], [from(8), ["b", "c"]]);
  await other.close();
});

test("a position beyond the end", async () => {
  for (const startPosition of [{ sequenceNumber: 1000 }, { offset: "9999999999999999" }]) {
    const error = await failure(receive(consumer, 1, "0", { startPosition }));
    assert.equal(error.code, "ArgumentError");
    assert.match(error.message, /The supplied (sequence number|offset) '\d+' is invalid\. The last .* in the system is '\d+'/);
  }
});

test("the newest is told with every event when asked for", async () => {
  const got = await receive(consumer, COUNT, "0", {
    startPosition: earliestEventPosition, trackLastEnqueuedEventProperties: true });
  const newest = await producer.getPartitionProperties("0");
  const told = got[0].context.lastEnqueuedEventProperties;
  assert.equal(told.sequenceNumber, newest.lastEnqueuedSequenceNumber);
  assert.equal(told.offset, newest.lastEnqueuedOffset);
  assert.equal(told.enqueuedOn.getTime(), newest.lastEnqueuedOnUtc.getTime());
  assert.ok(Math.abs(Date.now() - told.retrievedOn.getTime()) < 60000);
});

test("the newest is not told when nobody asks", async () => {
  const [event] = await receive(consumer, 1, "0", { startPosition: earliestEventPosition });
  assert.equal(event.context.lastEnqueuedEventProperties, undefined);
  assert.equal(event.getRawAmqpMessage().deliveryAnnotations, undefined);
});

test("all partitions at once, balanced by the client itself", async () => {
  const other = server.consumer("$Default");
  for (const partitionId of ["1", "2", "3"])
    await producer.sendBatch([{ body: `p${partitionId}` }], { partitionId });
  const all = await Promise.all(["0", "1", "2", "3"].map((id) => producer.getPartitionProperties(id)));
  const count = all.reduce((sum, p) => sum + p.lastEnqueuedSequenceNumber + 1, 0);
  const got = await receive(other, count, undefined, { startPosition: earliestEventPosition });
  assert.equal(got.length, count);
  assert.deepEqual([...new Set(got.map((e) => e.partition))].sort(), ["0", "1", "2", "3"]);
  await other.close();
});

test("a consumer group that is not there", async () => {
  const other = server.consumer("nobody");
  const error = await failure(receive(other, 1, "0"));
  assert.equal(error.code, "MessagingEntityNotFoundError");
  await other.close();
});

test("a partition that is not there", async () => {
  for (const id of ["4", "XYZ", "-1"]) {
    const error = await failure(receive(consumer, 1, id));
    assert.equal(error.code, "ArgumentOutOfRangeError");
  }
});

test("a megabyte in small frames and back", async () => {
  const body = Buffer.alloc(1000000, "x");
  await producer.sendBatch([{ body }], { partitionId: "3" });
  const last = await producer.getPartitionProperties("3");
  const [got] = await receive(consumer, 1, "3", {
    startPosition: { sequenceNumber: last.lastEnqueuedSequenceNumber, isInclusive: true } });
  assert.ok(got.body.equals(body));
});
