import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { EventHubConsumerClient } from "@azure/event-hubs";
import { failure, once, receive, Server } from "./server.mjs";

let server;
before(async () => { server = await new Server().start(); });
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
});

function token(resource, seconds, key = "SAS_KEY_VALUE", rule = "RootManageSharedAccessKey") {
  const sr = encodeURIComponent(resource);
  const se = Math.floor(Date.now() / 1000) + seconds;
  const sig = encodeURIComponent(createHmac("sha256", key).update(`${sr}\n${se}`).digest("base64"));
  return `SharedAccessSignature sr=${sr}&sig=${sig}&se=${se}&skn=${rule}`;
}

const withToken = (text) => server.producer("eh1", once, `SharedAccessSignature=${text}`);
const withKey = (rule, key) =>
  server.producer("eh1", once, `SharedAccessKeyName=${rule};SharedAccessKey=${key}`);

async function refuses(client, text) {
  const error = await failure(client.sendBatch([{ body: 1 }]));
  assert.equal(error.code, "UnauthorizedError");
  assert.match(error.message, text);
  await client.close();
}

test("a wrong key", () =>
  refuses(withKey("RootManageSharedAccessKey", "another"), /InvalidSignature: The token has an invalid signature/));

test("a rule that is not there", () => refuses(withKey("Nobody", "SAS_KEY_VALUE"), /InvalidSignature/));

test("a wrong key learns nothing about a hub either", async () => {
  const client = withKey("RootManageSharedAccessKey", "another");
  assert.equal((await failure(client.getEventHubProperties())).code, "UnauthorizedError");
  assert.equal((await failure(client.getPartitionProperties("0"))).code, "UnauthorizedError");
  await client.close();
});

// 20 s after it came the connection is closed. What follows the client's pause of 25 s needs a new one.
test("a wrong key is told by the retry as well", async () => {
  const patient = { retryOptions: { maxRetries: 1, retryDelayInMs: 25000, timeoutInMs: 60000 } };
  const client = server.producer("eh1", patient, "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=another");
  const error = await failure(client.getEventHubProperties());
  for (const each of error.errors ?? [error]) assert.equal(each.code, "UnauthorizedError");
  await client.close();
});

test("a token that has expired", () =>
  refuses(withToken(token("sb://localhost/eh1", -10)), /ExpiredToken: The token is expired\. Expiration time: '.+Z'/));

test("a token for another hub", () =>
  refuses(withToken(token("sb://localhost/eh2", 600)), /InvalidAudience/));

test("a token instead of a key, and no SASL with it", async () => {
  const client = withToken(token("sb://localhost/eh1", 600));
  await client.sendBatch([{ body: 1 }]);
  assert.equal((await client.getEventHubProperties()).name, "eh1");
  await client.close();
});

test("a token of the whole namespace", async () => {
  const client = withToken(token("sb://localhost/", 600));
  await client.sendBatch([{ body: 1 }]);
  await client.close();
});

test("a reader with a wrong key, and one with an expired token", async () => {
  for (const [credentials, text] of [
    ["SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=another", /InvalidSignature/],
    [`SharedAccessSignature=${token("sb://localhost/eh1", -10)}`, /ExpiredToken/],
  ]) {
    const client = new EventHubConsumerClient("$Default", server.string(credentials), "eh1", server.options());
    const error = await failure(receive(client, 1, "0"));
    assert.equal(error.code, "UnauthorizedError");
    assert.match(error.message, text);
    await client.close();
  }
});

test("a hub that is not there: to send to, to receive from", async () => {
  const producer = server.producer("nothing"), consumer = server.consumer("$Default", "nothing");
  for (const attempt of [() => producer.sendBatch([{ body: 1 }]),
    () => producer.createBatch({ partitionId: "0" }), () => receive(consumer, 1, "0")]) {
    const error = await failure(attempt());
    assert.equal(error.code, "MessagingEntityNotFoundError");
    assert.match(error.message, /The messaging entity 'sb:\/\/.*\/nothing' could not be found/);
  }
  await producer.close();
  await consumer.close();
});

test("a link ends with its token", async () => {
  const client = withToken(token("sb://localhost/eh1", 10)), ended = Date.now() + 11500;
  await client.sendBatch([{ body: 1 }]);
  await new Promise((resolve) => setTimeout(resolve, ended - Date.now())); // its life is in seconds
  assert.equal((await failure(client.sendBatch([{ body: 1 }]))).code, "UnauthorizedError");
  await client.close();
});
