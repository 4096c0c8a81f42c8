// What is only so with TLS. interop-js.sh makes the certificate, has Node trust it, and runs the
// other tests with TLS too.
import assert from "node:assert/strict";
import { once as happens } from "node:events";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { Server } from "./server.mjs";

let server;
before(async () => { server = await new Server(["eh1:1"], true).start(); });
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
});

test("who speaks without TLS is told so", async () => {
  const socket = connect(server.port, "127.0.0.1");
  socket.write("AMQP\x03\x01\x00\x00");
  const [answer] = await happens(socket, "data");
  assert.equal(answer.toString("latin1"), "AMQP\x02\x01\x00\x00");
  socket.destroy();
});

test("nothing older than TLS 1.2", async () => {
  const socket = connectTls({ port: server.port, host: "localhost", minVersion: "TLSv1", maxVersion: "TLSv1.1",
    ciphers: "DEFAULT@SECLEVEL=0" });
  const [error] = await happens(socket, "error");
  assert.match(error.code, /^ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION|^ERR_SSL_UNSUPPORTED_PROTOCOL|^ECONNRESET/);
});

test("both ports serve the same hubs", async () => {
  const secret = server.producer(), open = new Server(["eh1:1"], false);
  open.ready = server.ready;
  open.amqp = server.amqp;
  const plain = open.producer();
  await secret.sendBatch([{ body: 1 }]);
  await plain.sendBatch([{ body: 2 }]);
  assert.equal((await plain.getPartitionProperties("0")).lastEnqueuedSequenceNumber, 1);
  await secret.close();
  await plain.close();
  open.remove();
});
