import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { failure, once, Server } from "./server.mjs";

let server, producer;
before(async () => {
  server = await new Server().start();
  producer = server.producer();
});
after(async () => {
  await producer.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});

test("a hub says what it is", async () => {
  const hub = await producer.getEventHubProperties();
  assert.equal(hub.name, "eh1");
  assert.deepEqual(hub.partitionIds, ["0", "1", "2", "3"]);
  assert.ok(Math.abs(Date.now() - hub.createdOn.getTime()) < 60000);
  assert.deepEqual(await producer.getPartitionIds(), ["0", "1", "2", "3"]);
});

test("a consumer is told the same", async () => {
  const consumer = server.consumer("cg1");
  assert.deepEqual(await consumer.getEventHubProperties(), await producer.getEventHubProperties());
  assert.deepEqual(await consumer.getPartitionIds(), ["0", "1", "2", "3"]);
  assert.deepEqual(await consumer.getPartitionProperties("3"), await producer.getPartitionProperties("3"));
  await consumer.close();
});

test("an empty partition, then one with events", async () => {
  let p = await producer.getPartitionProperties("2");
  assert.equal(p.isEmpty, true);
  assert.equal(p.lastEnqueuedSequenceNumber, -1);
  assert.equal(p.lastEnqueuedOffset, "-1");
  await producer.sendBatch([{ body: 1 }, { body: 2 }], { partitionId: "2" });
  p = await producer.getPartitionProperties("2");
  assert.equal(p.isEmpty, false);
  assert.equal(p.partitionId, "2");
  assert.equal(p.beginningSequenceNumber, 0);
  assert.equal(p.lastEnqueuedSequenceNumber, 1);
  assert.match(p.lastEnqueuedOffset, /^\d+$/);
  assert.ok(Math.abs(Date.now() - p.lastEnqueuedOnUtc.getTime()) < 60000);
});

for (const id of ["4", "-1", "XYZ", "007", "boo"])
  test(`there is no partition ${id}`, async () => {
    const error = await failure(producer.getPartitionProperties(id));
    assert.equal(error.code, "ArgumentOutOfRangeError");
    assert.match(error.message, /The specified partition is invalid/);
  });

test("a hub that is not there", async () => {
  const other = server.producer("nothing", once);
  const error = await failure(other.getEventHubProperties());
  assert.equal(error.code, "MessagingEntityNotFoundError");
  assert.match(error.message, /The messaging entity 'sb:\/\/.*\/nothing' could not be found/);
  await other.close();
});

test("names are compared without regard to case", async () => {
  const other = server.producer("EH1", once);
  assert.equal((await other.getEventHubProperties()).name, "eh1");
  await other.close();
});

test("health is the emulator's", async () => {
  const reply = await fetch(`http://${server.ready.http}/health`);
  assert.equal(reply.status, 200);
  assert.equal(await reply.text(), '{"status":"healthy","message":"Service is healthy."}');
});

test("HTTP on the port of AMQP is told so", async () => {
  const reply = await fetch(`http://${server.ready.amqp}/`);
  assert.equal(reply.status, 400);
  assert.match(await reply.text(), /speaks AMQP 1\.0/);
});
