// A hub that was made over HTTP, by Azure's client: at once, and after kill -9.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { EventHubConsumerClient, earliestEventPosition } from "@azure/event-hubs";
import { failure, once, receive, Server } from "./server.mjs";

function token(rule, key, resource = "sb://localhost/") {
  const sr = encodeURIComponent(resource), se = Math.floor(Date.now() / 1000) + 600;
  const sig = encodeURIComponent(createHmac("sha256", key).update(`${sr}\n${se}`).digest("base64"));
  return `SharedAccessSignature sr=${sr}&sig=${sig}&se=${se}&skn=${rule}`;
}

async function put(server, path, body) {
  const answer = await fetch(`http://${server.ready.http}/$weir/${path}`, {
    method: "PUT",
    headers: { authorization: token("RootManageSharedAccessKey", "SAS_KEY_VALUE") },
    body: JSON.stringify(body),
  });
  return { status: answer.status, ...(await answer.json()) };
}

// A connection that is older than the hub is used, too.
test("a hub is there for clients as soon as it is answered, and after kill -9", async () => {
  const server = await new Server().start();
  const old = server.producer();
  await old.sendBatch([{ body: "before" }]);
  for (const name of ["fresh", "fresher"]) {
    const hub = await put(server, `hubs/${name}`, { partitions: 3, groups: ["g"] });
    assert.equal(hub.status, 201);
    const producer = server.producer(name), consumer = server.consumer("g", name);
    assert.deepEqual((await producer.getEventHubProperties()).partitionIds, ["0", "1", "2"]);
    await producer.sendBatch([{ body: name }], { partitionId: "2" });
    const got = await receive(consumer, 1, "2", { startPosition: earliestEventPosition });
    assert.equal(got[0].body, name);
    await producer.close();
    await consumer.close();
  }
  await old.close();
  await server.kill();
  await server.start();
  const consumer = server.consumer("g", "fresher"), producer = server.producer("fresher");
  await producer.sendBatch([{ body: "after" }], { partitionId: "2" });
  const got = await receive(consumer, 2, "2", { startPosition: earliestEventPosition });
  assert.deepEqual(got.map((e) => e.body), ["fresher", "after"]);
  await consumer.close();
  await producer.close();
  assert.equal(await server.stop(), 0);
  server.remove();
});

test("a key that was made over HTTP opens what it is for, and is told what it is not for", async () => {
  const server = await new Server().start();
  const made = await put(server, "hubs/eh1/keys/till", { rights: ["send"] });
  assert.equal(made.status, 201);
  const mine = `SharedAccessKeyName=till;SharedAccessKey=${made.primary_key}`;
  const producer = server.producer("eh1", once, mine);
  await producer.sendBatch([{ body: 1 }]);
  await producer.close();
  const reader = new EventHubConsumerClient("$Default", server.string(mine), "eh1", server.options());
  const error = await failure(receive(reader, 1, "0"));
  assert.match(error.message, /'Listen' claim\(s\) are required/);
  await reader.close();
  const refused = await fetch(`http://${server.ready.http}/$weir/hubs/eh1`, {
    headers: { authorization: token("till", made.primary_key, "sb://localhost/eh1") },
  });
  assert.equal(refused.status, 401);
  assert.match((await refused.json()).detail, /'Manage' claim\(s\) are required/);
  assert.equal(await server.stop(), 0);
  server.remove();
});
