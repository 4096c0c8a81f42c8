import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { EventHubProducerClient } from "@azure/event-hubs";
import { failure, once, Server } from "./server.mjs";

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

function withToken(text) {
  const [endpoint] = server.connectionString.split(";");
  return new EventHubProducerClient(
    `${endpoint};SharedAccessSignature=${text};UseDevelopmentEmulator=true`, "eh1", once);
}

async function refuses(client, text) {
  const error = await failure(client.sendBatch([{ body: 1 }]));
  assert.equal(error.code, "UnauthorizedError");
  assert.match(error.message, text);
  await client.close();
}

test("a wrong key", () => {
  const string = server.connectionString.replace("SAS_KEY_VALUE", "another");
  return refuses(new EventHubProducerClient(string, "eh1", once), /InvalidSignature: The token has an invalid signature/);
});

test("a rule that is not there", () => {
  const string = server.connectionString.replace("RootManageSharedAccessKey", "Nobody");
  return refuses(new EventHubProducerClient(string, "eh1", once), /InvalidSignature/);
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

test("a link ends with its token", async () => {
  const client = withToken(token("sb://localhost/eh1", 3));
  await client.sendBatch([{ body: 1 }]);
  await new Promise((resolve) => setTimeout(resolve, 4500)); // the life of a token is in seconds
  assert.equal((await failure(client.sendBatch([{ body: 1 }]))).code, "UnauthorizedError");
  await client.close();
});
