// rhea with TLS: by a certificate of its own (SASL EXTERNAL), and at the wrong port.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import rhea from "rhea";
import { Server } from "./server.mjs";

const dir = mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), "weir-certificate-"));
const file = (name) => join(dir, name);
const read = (name) => readFileSync(file(name));
const openssl = (...args) => execFileSync("openssl", args, { cwd: dir, stdio: "pipe" });

function makeAuthority(name) {
  openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
    "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.pem`);
}

function makeClient(name, authority) {
  openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
    "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.csr`);
  openssl("x509", "-req", "-in", `${name}.csr`, "-CA", `${authority}.pem`, "-CAkey", `${authority}.key`,
    "-CAcreateserial", "-days", "2", "-out", `${name}.pem`);
}

let server;
before(async () => {
  makeAuthority("clients");
  makeAuthority("strangers");
  makeClient("sender", "clients");
  makeClient("nobody", "clients");
  makeClient("stranger", "strangers");
  server = new Server(["eh1:1"]);
  execFileSync(process.env.WEIR ?? "weir", ["key", "add", "--name", "sender", "--rights", "send", "--data", server.data]);
  server.more = ["--amqps", "127.0.0.1:0", "--authority", file("authority"), "--tls-client-ca", file("clients.pem")];
  await server.start();
});
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
  rmSync(dir, { recursive: true, force: true });
});

// What becomes of a connection: the name of the first event, and its context.
function dial(address, options) {
  const connection = rhea.create_container().connect({
    host: "localhost", port: Number(address.split(":")[1]), reconnect: false, ...options });
  return new Promise((resolve) => {
    for (const name of ["connection_open", "connection_error", "disconnected", "error"])
      connection.once(name, (context) => resolve({ name, connection, error: context.error ?? context }));
  });
}

const byCertificate = (name) => dial(server.ready.amqps, {
  transport: "tls", ca: [read("authority/ca.pem")], key: read(`${name}.key`), cert: read(`${name}.pem`),
  enable_sasl_external: true, username: "anybody" });

test("a certificate has the rights of the rule that it names", async () => {
  const { name, connection } = await byCertificate("sender");
  assert.equal(name, "connection_open");
  const sender = connection.open_sender("eh1");
  await new Promise((resolve) => sender.once("sendable", resolve));
  sender.send({ body: "by certificate" });
  await new Promise((resolve) => sender.once("accepted", resolve));
  const receiver = connection.open_receiver("eh1/ConsumerGroups/$Default/Partitions/0");
  await new Promise((resolve) => receiver.once("receiver_error", resolve));
  assert.equal(receiver.error.condition, "amqp:unauthorized-access");
  connection.close();
});

test("a certificate that names no rule is refused", async () => {
  const { name, error } = await byCertificate("nobody");
  assert.equal(name, "connection_error");
  assert.equal(error.condition, "amqp:unauthorized-access");
});

test("a certificate of another authority ends the handshake", async () => {
  const { name } = await byCertificate("stranger");
  assert.equal(name, "disconnected");
});

test("without TLS at the port with TLS", async () => {
  const { name, error } = await dial(server.ready.amqps, { username: "anybody" });
  assert.notEqual(name, "connection_open");
  assert.match(String(error.message ?? error), /protocol id 2/);
});

test("with TLS at the port without", async () => {
  const { name, error } = await dial(server.ready.amqp, { username: "anybody", transport: "tls" });
  assert.notEqual(name, "connection_open");
  assert.match(String(error.message ?? error), /handshake failure/);
});
