// Idempotent producers: an epoch (the owner level) of a producer fences the older ones from its attach
// on; one that has published does so over a restart of the server, too.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { failure, Server } from "./server.mjs";

const at = { partitionId: "0" };
let server, hubs = 0;
before(async () => {
  server = await new Server(["i0:2", "i1:2", "i2:2"]).start();
});
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
});

// A producer in an epoch, as the buffered client makes its own; without an id the server gives one.
function producer(hub, ownerLevel, producerGroupId) {
  const client = server.producer(hub);
  client._enableIdempotentRetries = true;
  client._partitionOptions = { 0: { ownerLevel, producerGroupId } };
  return client;
}

const state = (client) => client.getPartitionPublishingProperties("0");
const last = async (client) => (await client.getPartitionProperties("0")).lastEnqueuedSequenceNumber;

test("a newer epoch fences the older one when it attaches", async () => {
  const hub = `i${hubs++}`, old = producer(hub, 0);
  await old.sendBatch([{ body: 1 }], at);
  const id = (await state(old)).producerGroupId;
  const young = producer(hub, 1, id);
  const begun = await state(young); // it has an open link and has published nothing
  assert.equal(begun.ownerLevel, 1);
  assert.equal(begun.producerGroupId, id);
  const error = await failure(old.sendBatch([{ body: 2 }], at));
  assert.equal(error.code, "ProducerDisconnectedError");
  assert.match(error.message, /Received:0 Current:1/);
  await young.sendBatch([{ body: 3 }, { body: 4 }], at);
  assert.equal(await last(young), 2);
  await old.close();
  await young.close();
});

test("an older epoch is not let in", async () => {
  const hub = `i${hubs++}`, first = producer(hub, 3);
  const id = (await state(first)).producerGroupId;
  const late = producer(hub, 2, id);
  // The client knows this condition as an outcome of a send only: here it has no code for it.
  const error = await failure(late.sendBatch([{ body: 1 }], at));
  assert.equal(error.name, "MessagingError");
  assert.match(error.message, /a newer epoch took over. Received:2 Current:3/);
  const again = producer(hub, 3, id); // the same epoch may come again
  await again.sendBatch([{ body: 2 }], at);
  assert.equal(await last(again), 0);
  for (const client of [first, late, again]) await client.close();
});

test("what an epoch has published fences over a restart", async () => {
  const hub = `i${hubs++}`, young = producer(hub, 5);
  await young.sendBatch([{ body: 1 }], at);
  const id = (await state(young)).producerGroupId;
  await young.close();
  assert.equal(await server.stop(), 0);
  await server.start();
  const old = producer(hub, 4, id);
  const error = await failure(old.sendBatch([{ body: 2 }], at));
  assert.match(error.message, /a newer epoch took over. Received:4 Current:5/);
  const back = producer(hub, 5, id);
  assert.equal((await state(back)).lastPublishedSequenceNumber, 1);
  await back.sendBatch([{ body: 3 }], at);
  assert.equal(await last(back), 1);
  await old.close();
  await back.close();
});
