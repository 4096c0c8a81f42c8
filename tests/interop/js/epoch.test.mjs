import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { earliestEventPosition } from "@azure/event-hubs";
import { receive, Server } from "./server.mjs";

let server, producer, partition = 0;
before(async () => {
  server = await new Server(["eh1:16:cg1"]).start();
  producer = server.producer();
});
after(async () => {
  await producer.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});

// A receiver that has come so far as to have an event, or an error.
function reader(id, ownerLevel) {
  const client = server.consumer("cg1");
  const self = { client, received: 0 };
  self.failed = new Promise((resolve) => { self.fail = resolve; });
  self.running = new Promise((resolve) => {
    self.subscription = client.subscribe(id, {
      processEvents: async (list) => { if (list.length) { self.received += list.length; resolve(true); } },
      processError: async (error) => { self.fail(error); resolve(false); },
    }, { startPosition: earliestEventPosition, ownerLevel, maxWaitTimeInSeconds: 1 });
  });
  self.close = async () => { await self.subscription.close(); await client.close(); };
  return self;
}

// A partition with an event, and readers that are closed at the end.
async function scene(work) {
  const id = String(partition++);
  const readers = [];
  await producer.sendBatch([{ body: "x" }], { partitionId: id });
  try {
    await work((ownerLevel) => { const r = reader(id, ownerLevel); readers.push(r); return r; });
  } finally {
    for (const r of readers) await r.close();
  }
}

test("a higher epoch takes the place", () =>
  scene(async (add) => {
    const low = add(1);
    assert.equal(await low.running, true);
    const high = add(2);
    assert.equal(await high.running, true);
    const error = await low.failed;
    assert.equal(error.code, "ReceiverDisconnectedError");
    assert.match(error.message, /New receiver '.+' with higher epoch of '2' is created hence current receiver '.+' with epoch '1' is getting disconnected/);
  }));

test("the same epoch takes the place too", () =>
  scene(async (add) => {
    const first = add(5);
    assert.equal(await first.running, true);
    assert.equal(await add(5).running, true);
    assert.equal((await first.failed).code, "ReceiverDisconnectedError");
  }));

test("a lower epoch is refused", () =>
  scene(async (add) => {
    const high = add(2);
    assert.equal(await high.running, true);
    const low = add(1);
    assert.equal(await low.running, false);
    const error = await low.failed;
    assert.equal(error.code, "ReceiverDisconnectedError");
    assert.match(error.message, /Receiver '.+' with a higher epoch '2' already exists. Receiver '.+' with epoch 1 cannot be created/);
  }));

test("without an epoch nobody gets past one", () =>
  scene(async (add) => {
    assert.equal(await add(1).running, true);
    const none = add(undefined);
    assert.equal(await none.running, false);
    const error = await none.failed;
    assert.equal(error.code, "ReceiverDisconnectedError");
    assert.match(error.message, /At least one receiver for the endpoint is created with epoch of '1', and so non-epoch receiver is not allowed/);
  }));

test("an epoch pushes out who has none", () =>
  scene(async (add) => {
    const none = add(undefined);
    assert.equal(await none.running, true);
    assert.equal(await add(1).running, true);
    assert.equal((await none.failed).code, "ReceiverDisconnectedError");
  }));

test("five without an epoch, not six", () =>
  scene(async (add) => {
    const five = Array.from({ length: 5 }, () => add(undefined));
    for (const r of five) assert.equal(await r.running, true);
    const sixth = add(undefined);
    assert.equal(await sixth.running, false);
    const error = await sixth.failed;
    assert.equal(error.code, "QuotaExceededError");
    assert.match(error.message, /Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5/);
  }));

test("a place that was left is free", () =>
  scene(async (add) => {
    const first = add(9);
    assert.equal(await first.running, true);
    await first.subscription.close();
    assert.equal(await add(1).running, true);
  }));

test("a place of another group or partition is another place", () =>
  scene(async (add) => {
    assert.equal(await add(5).running, true);
    const other = server.consumer("$Default");
    const got = await receive(other, 1, String(partition - 1), { startPosition: earliestEventPosition });
    assert.equal(got.length, 1);
    await other.close();
  }));

test("who was pushed out by an epoch can come back with a higher one", () =>
  scene(async (add) => {
    const first = add(1);
    assert.equal(await first.running, true);
    const second = add(2);
    assert.equal(await second.running, true);
    assert.equal((await first.failed).code, "ReceiverDisconnectedError");
    assert.equal(await add(3).running, true);
    assert.equal((await second.failed).code, "ReceiverDisconnectedError");
  }));
