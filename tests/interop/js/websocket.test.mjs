// Azure's client through a WebSocket, as people behind a firewall use it. It always dials wss;
// interop-js.sh makes the certificate and has Node trust it. Plain ws is seen through rhea.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once as happens } from "node:events";
import { after, before, test } from "node:test";
import { earliestEventPosition, EventHubConsumerClient, EventHubProducerClient } from "@azure/event-hubs";
import rhea from "rhea";
import WebSocket from "ws";
import { once, receive, Server } from "./server.mjs";

const { WEIR_TEST_CERTIFICATE: certificate, WEIR_TEST_KEY: key } = process.env;
const skip = !certificate && "there is no certificate";
const start = { startPosition: earliestEventPosition };
const options = { ...once, webSocketOptions: { webSocket: WebSocket } };
const path = "/$servicebus/websocket";
let server, string;

before(async () => {
  server = new Server(["eh1:4:cg1", "eh2:1", "eh3:1"], false);
  if (!skip) server.more = ["--https", "127.0.0.1:0", "--tls-certificate", certificate, "--tls-key", key];
  await server.start();
  const port = server.ready.https?.split(":")[1];
  string = `Endpoint=sb://localhost:${port}/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE`;
});
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
});

async function withClients(hub, work) {
  const producer = new EventHubProducerClient(string, hub, options);
  const consumer = new EventHubConsumerClient("$Default", string, hub, options);
  try {
    await work(producer, consumer);
  } finally {
    await producer.close();
    await consumer.close();
  }
}

test("properties", { skip }, () =>
  withClients("eh1", async (producer, consumer) => {
    const hub = await producer.getEventHubProperties();
    assert.equal(hub.name, "eh1");
    assert.deepEqual(hub.partitionIds, ["0", "1", "2", "3"]);
    const partition = await consumer.getPartitionProperties("3");
    assert.equal(partition.lastEnqueuedSequenceNumber, -1);
    assert.equal(partition.isEmpty, true);
  }));

test("send and receive, small and large", { skip }, () =>
  withClients("eh2", async (producer, consumer) => {
    const large = Buffer.alloc(900000, 0x81);
    await producer.sendBatch([{ body: "small", properties: { n: 7 } }]);
    await producer.sendBatch([{ body: large }]);
    for (let i = 0; i < 10; i++) await producer.sendBatch([{ body: i }]);
    const got = await receive(consumer, 12, "0", start);
    assert.equal(got[0].body, "small");
    assert.deepEqual(got[0].properties, { n: 7 });
    assert.deepEqual(got[1].body, large);
    assert.deepEqual(got.slice(2).map((e) => e.body), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  }));

test("a thousand sends at once, and all of them come back", { skip }, () =>
  withClients("eh3", async (producer, consumer) => {
    const body = "x".repeat(1000);
    await Promise.all(Array.from({ length: 1000 }, () => producer.sendBatch([{ body }])));
    const got = await receive(consumer, 1000, "0", { ...start, maxBatchSize: 100 });
    assert.deepEqual(got.map((e) => e.sequenceNumber), Array.from({ length: 1000 }, (_, i) => i));
    assert.ok(got.every((e) => e.body === body));
  }));

test("a missing hub is told as everywhere", { skip }, async () => {
  const producer = new EventHubProducerClient(string, "nothing", options);
  await assert.rejects(producer.sendBatch([{ body: 1 }]), { code: "MessagingEntityNotFoundError" });
  await producer.close();
});

// Operators make hubs while it runs.
test("a hub made by HTTP is there for clients at once, and after kill -9", async () => {
  const mine = await new Server([], false).start();
  const sr = encodeURIComponent("sb://localhost/"), se = Math.floor(Date.now() / 1000) + 600;
  const sig = createHmac("sha256", "SAS_KEY_VALUE").update(`${sr}\n${se}`).digest("base64");
  const authorization = `SharedAccessSignature sr=${sr}&sig=${encodeURIComponent(sig)}&se=${se}&skn=RootManageSharedAccessKey`;
  const made = await fetch(`http://${mine.ready.http}/$weir/hubs/fresh`,
    { method: "PUT", headers: { authorization }, body: '{"partitions":1}' });
  assert.equal(made.status, 201);
  const producer = mine.producer("fresh");
  await producer.sendBatch([{ body: "first" }]);
  await producer.close();
  await mine.kill();
  await mine.start();
  const consumer = mine.consumer("$Default", "fresh");
  const [got] = await receive(consumer, 1, "0", start);
  assert.equal(got.body, "first");
  await consumer.close();
  assert.equal(await mine.stop(), 0);
  mine.remove();
});

// What the handshake says, on the plain port.
const url = () => `ws://${server.ready.http}${path}`;

for (const protocol of ["AMQPWSB10", "amqp"])
  test(`rhea by ws with the sub-protocol ${protocol}`, async () => {
    const ws = rhea.websocket_connect(WebSocket);
    const container = rhea.create_container();
    const connection = container.connect({ connection_details: ws(url(), [protocol], {}),
      username: "RootManageSharedAccessKey", password: "SAS_KEY_VALUE", reconnect: false });
    const sender = connection.open_sender("eh1");
    await happens(sender, "sendable");
    sender.send({ body: rhea.message.data_section(Buffer.from("by ws")) });
    await happens(sender, "accepted");
    connection.close();
    await happens(connection, "connection_close");
  });

test("the first protocol of ours is chosen, and .NET's slash is fine", async () => {
  const ws = new WebSocket(url() + "/", ["foo", "amqp"]);
  await happens(ws, "open");
  assert.equal(ws.protocol, "amqp");
  ws.ping("are you there");
  const [pong] = await happens(ws, "pong");
  assert.equal(pong.toString(), "are you there");
  ws.close(1000);
  const [code] = await happens(ws, "close");
  assert.equal(code, 1000);
});

test("other protocols, and none, are refused", async () => {
  for (const protocols of [["mqtt"], []]) {
    const ws = new WebSocket(url(), protocols);
    const [error] = await happens(ws, "error");
    assert.match(error.message, /400/);
  }
  const answer = await fetch(url().replace("ws:", "http:"));
  assert.equal(answer.status, 426);
  assert.match(await answer.text(), /<Code>426<\/Code>/);
});

test("text is not AMQP", async () => {
  const ws = new WebSocket(url(), ["amqp"]);
  await happens(ws, "open");
  ws.send("AMQP");
  const [code] = await happens(ws, "close");
  assert.equal(code, 1003);
});

test("what is no AMQP inside is answered with what is spoken here, and closed", async () => {
  const ws = new WebSocket(url(), ["amqp"]);
  await happens(ws, "open");
  ws.send(Buffer.from("GET / HTTP/1.1\r\n\r\n"));
  const [code] = await happens(ws, "close");
  assert.equal(code, 1000);
});

test("the server's end is a close", async () => {
  const mine = await new Server(["eh1:1"], false).start();
  const ws = new WebSocket(`ws://${mine.ready.http}${path}`, ["amqp"]);
  await happens(ws, "open");
  const closed = happens(ws, "close");
  assert.equal(await mine.stop(), 0);
  assert.equal((await closed)[0], 1000);
  mine.remove();
});
