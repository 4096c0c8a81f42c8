import assert from "node:assert/strict";
import { test } from "node:test";
import { earliestEventPosition } from "@azure/event-hubs";
import { pause, receive, Server } from "./server.mjs";

const ROUNDS = Number(process.env.ROUNDS ?? 3);
const quick = { retryOptions: { maxRetries: 20, retryDelayInMs: 50, timeoutInMs: 5000 } };

// Sends numbers, each twice, until told to end; a number counts when it was acknowledged.
async function publish(server, acknowledged, state) {
  const producer = server.producer("eh1", { retryOptions: { maxRetries: 0, timeoutInMs: 3000 } });
  while (!state.over) {
    const body = state.next++;
    try {
      await producer.sendBatch([{ body }, { body }], { partitionId: "0" });
      acknowledged.push(body);
    } catch {
      await pause(20);
    }
  }
  await producer.close();
}

// Reads along; after a crash the client goes on behind the last event, or begins anew.
function follow(consumer) {
  const self = { last: -1, gaps: [] };
  self.subscription = consumer.subscribe("0", {
    processEvents: async (list) => {
      for (const { sequenceNumber: n } of list) {
        if (n !== self.last + 1 && n !== 0) self.gaps.push([self.last, n]);
        self.last = n;
      }
    },
    processError: async () => {},
  }, { startPosition: earliestEventPosition, maxBatchSize: 100, maxWaitTimeInSeconds: 1 });
  return self;
}

test(`kill -9 under load, ${ROUNDS} times: what was acknowledged is there, in order`, async () => {
  const server = await new Server(["eh1:1"]).start();
  const acknowledged = [], state = { next: 0, over: false };
  const publisher = publish(server, acknowledged, state);
  const follower = server.consumer("$Default", "eh1", quick), following = follow(follower);
  for (let i = 0; i < ROUNDS; i++) {
    const before = acknowledged.length;
    while (acknowledged.length < before + 50) await pause(5);
    await pause(Math.random() * 10); // at any moment of a send
    await server.kill();
    await server.start();
  }
  state.over = true;
  await publisher;
  const consumer = server.consumer("$Default", "eh1", quick);
  const last = (await consumer.getPartitionProperties("0")).lastEnqueuedSequenceNumber;
  const got = await receive(consumer, last + 1, "0", { startPosition: earliestEventPosition, maxBatchSize: 500 });
  got.forEach((e, i) => assert.equal(e.sequenceNumber, i));
  while (following.last < last) await pause(20);
  assert.deepEqual(following.gaps, []);
  await following.subscription.close();
  await follower.close();
  const bodies = got.map((e) => e.body), there = new Set(bodies);
  assert.deepEqual(acknowledged.filter((n) => !there.has(n)), []);
  assert.deepEqual(bodies, [...bodies].sort((a, b) => a - b));
  assert.equal(bodies.length, 2 * there.size); // a batch is there or not, never a part of it
  console.log(`${ROUNDS} kills, ${acknowledged.length} batches acknowledged, ${there.size} stored`);
  await consumer.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});

test("a client lives through a restart of the server", async () => {
  const server = await new Server(["eh1:1"]).start();
  const producer = server.producer("eh1", quick), consumer = server.consumer("$Default", "eh1", quick);
  const got = [];
  const subscription = consumer.subscribe("0", {
    processEvents: async (list) => { got.push(...list.map((e) => e.body)); },
    processError: async () => {},
  }, { startPosition: earliestEventPosition, maxWaitTimeInSeconds: 1 });
  await producer.sendBatch([{ body: "before" }]);
  while (got.length < 1) await pause(10);
  assert.equal(await server.stop(), 0);
  await server.start();
  await producer.sendBatch([{ body: "after" }]);
  // The client may begin anew at its own start, which is its right.
  while (!got.includes("after")) await pause(10);
  await subscription.close();
  await producer.close();
  await consumer.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});
