// The same client with TLS, as it comes out of the box. interop-js.sh makes the certificate and has
// Node trust it.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { earliestEventPosition, EventHubConsumerClient, EventHubProducerClient } from "@azure/event-hubs";
import { once as onceHappens } from "node:events";
import { once, receive, Server } from "./server.mjs";

const { WEIR_TEST_CERTIFICATE: certificate, WEIR_TEST_KEY: key } = process.env;

test("TLS", { skip: !certificate && "there is no certificate" }, async (t) => {
  const server = new Server(["eh1:1"]);
  server.more = ["--amqps", "127.0.0.1:0", "--tls-certificate", certificate, "--tls-key", key];
  await server.start();
  const [host, port] = server.ready.amqps.split(":");
  const string = "Endpoint=sb://localhost/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE";
  const options = { ...once, customEndpointAddress: `sb://localhost:${port}` };

  await t.test("send and receive", async () => {
    const producer = new EventHubProducerClient(string, "eh1", options);
    const consumer = new EventHubConsumerClient("$Default", string, "eh1", options);
    await producer.sendBatch([{ body: "secret" }, { body: Buffer.alloc(900000, 0x81) }]);
    const got = await receive(consumer, 2, "0", { startPosition: earliestEventPosition });
    assert.equal(got[0].body, "secret");
    assert.equal(got[1].body.length, 900000);
    await producer.close();
    await consumer.close();
  });

  await t.test("who speaks without TLS is told so", async () => {
    const socket = connect(Number(port), host);
    socket.write("AMQP\x03\x01\x00\x00");
    const [answer] = await onceHappens(socket, "data");
    assert.equal(answer.toString("latin1"), "AMQP\x02\x01\x00\x00");
    socket.destroy();
  });

  assert.equal(await server.stop(), 0);
  server.remove();
});
