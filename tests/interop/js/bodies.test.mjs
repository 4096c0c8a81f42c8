// What the client makes of a body, and whether it comes back: null and undefined are data sections
// of null, arrays are sequences only when asked for, all else is JSON or bytes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { earliestEventPosition } from "@azure/event-hubs";
import { receive, Server } from "./server.mjs";

const start = { startPosition: earliestEventPosition };
let server, producer, consumer, next = 0;
before(async () => {
  server = await new Server(["bodies:32"]).start();
  producer = server.producer("bodies");
  consumer = server.consumer("$Default", "bodies");
});
after(async () => {
  await producer.close();
  await consumer.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});

// Each body alone, in a partition of its own, and then as the first and the last of a batch.
async function comesBack(body, want, more = {}) {
  const partitionId = String(next++), event = { body, ...more };
  await producer.sendBatch([event], { partitionId });
  await producer.sendBatch([event, { body: "between" }, event], { partitionId });
  const got = await receive(consumer, 4, partitionId, start);
  assert.deepEqual(got.map((e) => e.body), [want, want, "between", want]);
  return got[0].getRawAmqpMessage().bodyType;
}

const bodies = {
  null: [null, null],
  undefined: [undefined, null],
  false: [false, false],
  true: [true, true],
  zero: [0, 0],
  "negative zero": [-0, 0],
  "a fraction": [-0.5, -0.5],
  "a large number": [2 ** 53, 2 ** 53],
  "NaN, which JSON has not": [NaN, null],
  "an empty text": ["", ""],
  "a text": ["grüße, 日本語", "grüße, 日本語"],
  "nested objects": [{ a: { b: { c: [1, { d: null }] } }, e: "" }, { a: { b: { c: [1, { d: null }] } }, e: "" }],
  "an empty object": [{}, {}],
  "an array": [[1, "two", [3], null], [1, "two", [3], null]],
  "an empty array": [[], []],
  "a date": [new Date(0), "1970-01-01T00:00:00.000Z"],
  "bytes": [Buffer.from([0, 1, 254, 255]), Buffer.from([0, 1, 254, 255])],
  "no bytes": [Buffer.alloc(0), Buffer.alloc(0)],
};
for (const [name, [body, want]] of Object.entries(bodies))
  test(`a body of ${name}`, async () => assert.equal(await comesBack(body, want), "data"));

test("a sequence", async () => {
  const list = [1, "two", null, [true, false]];
  assert.equal(await comesBack(list, list, { bodyType: "sequence" }), "sequence");
});

const values = { null: null, false: false, zero: 0, "an empty text": "", "an object": { a: 1 } };
for (const [name, body] of Object.entries(values))
  test(`a value of ${name}`, async () =>
    assert.equal(await comesBack(body, body, { bodyType: "value" }), "value"));
