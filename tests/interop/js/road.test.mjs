// The road breaks under load, again and again: clients find back, and nothing is lost or out of
// order. What the server had stored when the answer was lost is sent twice, unless the producer is
// idempotent.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { earliestEventPosition } from "@azure/event-hubs";
import { once, pause, receive, Server, until } from "./server.mjs";
import { Road } from "./road.mjs";

const CUTS = Number(process.env.CUTS ?? 5);
const quick = { retryOptions: { maxRetries: 50, retryDelayInMs: 20, timeoutInMs: 800 } };
let server, road;
before(async () => {
  server = await new Server(["eh1:4", "eh2:1"]).start();
  road = new Road(server.port);
  server.detour = await road.open();
});
after(async () => {
  await road.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});

// One send after the other, each with a number; the client repeats what fails.
async function publish(producer, state, partitionId) {
  while (!state.over) {
    await producer.sendBatch([{ body: state.next }, { body: state.next }], { partitionId });
    state.next++;
  }
}

async function cutWhile(progress) {
  for (let i = 0; i < CUTS; i++) {
    const before = progress();
    await until(() => progress() >= before + 10);
    await pause(Math.random() * 20); // anywhere in the middle of a send
    road.cut();
  }
}

test("a producer and a consumer over a road that breaks", async () => {
  const producer = server.producer("eh1", quick), consumer = server.consumer("$Default", "eh1", quick);
  const state = { next: 0, over: false };
  let seen = []; // since the subscription opened the partition: when it gives up, it begins again where it was told to
  const publishing = publish(producer, state, "0");
  const subscription = consumer.subscribe("0", {
    processInitialize: async () => { seen = []; },
    processEvents: async (list) => { seen.push(...list); },
    processError: async () => {},
  }, { startPosition: earliestEventPosition, maxBatchSize: 50, maxWaitTimeInSeconds: 1 });
  await cutWhile(() => Math.min(state.next, seen.length));
  state.over = true;
  await publishing;
  const last = (await consumer.getPartitionProperties("0")).lastEnqueuedSequenceNumber;
  await until(() => seen.at(-1)?.sequenceNumber === last);
  await subscription.close();
  // The reader had every event once, in order, in spite of all; and each batch is whole.
  assert.deepEqual(seen.map((e) => e.sequenceNumber), seen.map((_, i) => i));
  const numbers = seen.map((e) => e.body).filter((_, i) => i % 2 === 0);
  seen.forEach((e, i) => assert.equal(e.body, numbers[i >> 1]));
  assert.deepEqual([...new Set(numbers)], Array.from({ length: state.next }, (_, i) => i));
  assert.ok(road.cuts >= CUTS);
  await producer.close();
  await consumer.close();
});

test("an idempotent producer over the same road: every event once", async () => {
  const producer = server.producer("eh2", quick), consumer = server.consumer("$Default", "eh2", quick);
  const state = { next: 0, over: false };
  producer._enableIdempotentRetries = true; // as the buffered producer does
  const publishing = publish(producer, state, "0");
  await cutWhile(() => state.next);
  state.over = true;
  await publishing;
  const got = await receive(consumer, 2 * state.next, "0", { startPosition: earliestEventPosition, maxBatchSize: 500 });
  assert.deepEqual(got.map((e) => e.body), Array.from({ length: 2 * state.next }, (_, i) => i >> 1));
  assert.equal((await consumer.getPartitionProperties("0")).lastEnqueuedSequenceNumber, 2 * state.next - 1);
  await producer.close();
  await consumer.close();
});

test("a place is free when its reader's road is lost", async () => {
  const lost = server.consumer("$Default", "eh1", once), direct = new Server([]);
  const high = { startPosition: earliestEventPosition, ownerLevel: 9, maxWaitTimeInSeconds: 1 };
  const running = new Promise((resolve) => {
    lost.subscription = lost.subscribe("0", { processEvents: resolve, processError: async () => {} }, high);
  });
  await running;
  road.shut = true; // it cannot come back
  road.cut();
  Object.assign(direct, server, { detour: undefined });
  const found = direct.consumer();
  const [event] = await receive(found, 1, "0", { startPosition: earliestEventPosition, ownerLevel: 1 });
  assert.equal(event.sequenceNumber, 0);
  await lost.subscription.close();
  await lost.close();
  await found.close();
});
