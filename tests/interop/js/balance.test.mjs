// Clients that share the partitions of a hub among themselves through a store of ownerships and
// checkpoints: the client's own one, in memory. It takes partitions with epoch 0, by stealing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { earliestEventPosition } from "@azure/event-hubs";
import { once, Server, until } from "./server.mjs";

const { InMemoryCheckpointStore } = await import(
  new URL("node_modules/@azure/event-hubs/dist/esm/inMemoryCheckpointStore.js", import.meta.url));
const PARTITIONS = 8;
const ids = Array.from({ length: PARTITIONS }, (_, i) => String(i));
const loadBalancingOptions = {
  strategy: "greedy", updateIntervalInMs: 200, partitionOwnershipExpirationIntervalInMs: 3000 };

let server;
before(async () => {
  server = await new Server([`eh1:${PARTITIONS}:cg1`, `eh2:${PARTITIONS}:cg1`]).start();
});
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
});

// A client that reads what it gets hold of, and makes a checkpoint after each batch.
class Member {
  constructor(store, hub) {
    this.owned = new Set();
    this.seen = []; // "partition/sequence number"
    this.errors = [];
    this.client = server.consumer("cg1", hub, { ...once, loadBalancingOptions }, store);
    this.subscription = this.client.subscribe({
      processInitialize: async ({ partitionId }) => { this.owned.add(partitionId); },
      processClose: async (_, { partitionId }) => { this.owned.delete(partitionId); },
      processError: async (error) => { this.errors.push(error.code ?? error.message); },
      processEvents: async (list, context) => {
        this.seen.push(...list.map((e) => `${context.partitionId}/${e.sequenceNumber}`));
        if (list.length) await context.updateCheckpoint(list.at(-1));
      },
    }, { startPosition: earliestEventPosition, maxWaitTimeInSeconds: 1 });
  }

  async leave() {
    await this.subscription.close();
    await this.client.close();
  }
}

async function publish(hub, count) {
  const producer = server.producer(hub);
  for (const partitionId of ids)
    await producer.sendBatch(Array.from({ length: count }, (_, i) => ({ body: i })), { partitionId });
  await producer.close();
}

const everything = (count) => ids.flatMap((id) => Array.from({ length: count }, (_, i) => `${id}/${i}`)).sort();

test("two share, one comes, one goes", async () => {
  const store = new InMemoryCheckpointStore();
  const first = new Member(store, "eh1");
  await until(() => first.owned.size === PARTITIONS); // alone it has them all
  await publish("eh1", 5);
  await until(() => first.seen.length === 5 * PARTITIONS);
  const second = new Member(store, "eh1");
  await until(() => first.owned.size === PARTITIONS / 2 && second.owned.size === PARTITIONS / 2);
  assert.deepEqual([...first.owned, ...second.owned].sort(), ids);
  assert.deepEqual(second.seen, []); // it goes on behind the checkpoints, not at the start
  await publish("eh1", 5);
  await until(() => first.seen.length + second.seen.length === 10 * PARTITIONS);
  await first.leave();
  await until(() => second.owned.size === PARTITIONS);
  await publish("eh1", 5);
  await until(() => first.seen.length + second.seen.length === 15 * PARTITIONS);
  await second.leave();
  // Everything was read, and nothing twice.
  assert.deepEqual([...first.seen, ...second.seen].sort(), everything(15));
  // Who loses a partition is told so in the words of the service, and of nothing else.
  for (const code of [...first.errors, ...second.errors]) assert.equal(code, "ReceiverDisconnectedError");
});

test("who comes back goes on behind the checkpoint", async () => {
  const store = new InMemoryCheckpointStore();
  await publish("eh2", 3);
  const first = new Member(store, "eh2");
  await until(() => first.seen.length === 3 * PARTITIONS);
  await first.leave();
  await publish("eh2", 2);
  const again = new Member(store, "eh2");
  await until(() => again.seen.length === 2 * PARTITIONS);
  await again.leave();
  assert.deepEqual([...first.seen, ...again.seen].sort(), everything(5));
  assert.deepEqual(again.errors, []);
});
