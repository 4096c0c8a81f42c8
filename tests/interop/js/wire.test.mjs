// What other clients do and Azure's JavaScript client does not, by hand with rhea: other forms of
// selectors and addresses, settle modes, drain, types of replies.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { connect as dial } from "node:net";
import { after, before, test } from "node:test";
import rhea from "rhea";
import { Server, withTls } from "./server.mjs";

const COUNT = 6;
let server;
before(async () => {
  server = await new Server(["eh1:2:cg1"]).start();
  const producer = server.producer();
  for (let i = 0; i < COUNT; i++) await producer.sendBatch([{ body: i }], { partitionId: "0" });
  await producer.close();
});
after(async () => {
  assert.equal(await server.stop(), 0);
  server.remove();
});

function token(resource) {
  const sr = encodeURIComponent(resource), se = Math.floor(Date.now() / 1000) + 600;
  const mac = createHmac("sha256", "SAS_KEY_VALUE").update(`${sr}\n${se}`).digest("base64");
  return `SharedAccessSignature sr=${sr}&sig=${encodeURIComponent(mac)}&se=${se}&skn=RootManageSharedAccessKey`;
}

const PATIENCE_MS = 60000;

// The first of these events; what never happens is told by name.
const happens = (emitter, ...names) =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`there was no ${names.join(" or ")}`)), PATIENCE_MS);
    for (const name of names)
      emitter.once(name, (context) => {
        clearTimeout(late);
        resolve({ name, ...context });
      });
  });

async function connect(options = {}) {
  const connection = rhea.create_container().connect({ ...server.road(), username: "anyone", ...options });
  connection.on("disconnected", () => {});
  connection.on("error", () => {});
  await happens(connection, "connection_open");
  return connection;
}

// One request, one reply, on a session of their own. It is over before the next one begins: rhea may
// write that first, and a connection has one link for tokens.
async function ask(connection, node, message) {
  const session = connection.create_session();
  session.begin();
  const sender = session.open_sender(node), receiver = session.open_receiver(node);
  await happens(sender, "sendable");
  sender.send({ message_id: "m1", ...message });
  const { message: reply } = await happens(receiver, "message");
  const ended = happens(session, "session_close");
  session.close();
  await ended;
  return reply;
}

function putToken(connection, audience = "sb://localhost/eh1", type = "servicebus.windows.net:sastoken", text) {
  return ask(connection, "$cbs", {
    application_properties: { operation: "put-token", type, name: audience },
    body: text ?? token("sb://localhost/eh1") });
}

async function trusted(options) {
  const connection = await connect(options);
  assert.equal((await putToken(connection)).application_properties["status-code"], 202);
  return connection;
}

const selector = (text, descriptor = rhea.types.wrap_ulong(0x468C00000004)) => ({
  "apache.org:selector-filter:string": rhea.types.wrap_described(text, descriptor) });

async function bodies(connection, address, filter, count, more = {}) {
  const got = [];
  const receiver = connection.open_receiver({
    source: { address, filter }, credit_window: 0, autoaccept: true, ...more });
  return new Promise((resolve, reject) => {
    receiver.on("receiver_open", () => receiver.add_credit(count));
    receiver.on("receiver_error", () => reject(receiver.error));
    receiver.on("message", ({ message }) => {
      got.push(Number(message.body.content.toString()));
      if (got.length === count) { receiver.close(); resolve(got); }
    });
  });
}

const place = "eh1/ConsumerGroups/cg1/Partitions/0";

for (const [text, descriptor] of [
  ["amqp.annotation.x-opt-sequence-number >'2'"], // C++
  ["amqp.annotation.x-opt-sequence-number >= 3", rhea.types.wrap_ulong(0x137000000A)], // .NET
  ["amqp.annotation.x-opt-sequence-number > '2'", rhea.types.wrap_symbol("apache.org:selector-filter:string")],
])
  test(`selector ${text}`, async () => {
    const connection = await trusted();
    assert.deepEqual(await bodies(connection, place, selector(text, descriptor), 3), [3, 4, 5]);
    connection.close();
  });

for (const address of [`/${place}`, `amqps://localhost:5671/${place}`, place.toUpperCase()])
  test(`address ${address}`, async () => {
    const connection = await trusted();
    assert.deepEqual(await bodies(connection, address, undefined, 2), [0, 1]);
    connection.close();
  });

test("a selector that is none", async () => {
  const connection = await trusted();
  await assert.rejects(bodies(connection, place, selector("color = 'red'"), 1),
    { condition: "com.microsoft:argument-error" });
  connection.close();
});

test("frames of 512 bytes, and settled deliveries", async () => {
  const connection = await trusted({ max_frame_size: 512 });
  assert.deepEqual(await bodies(connection, place, undefined, COUNT, { snd_settle_mode: 1 }), [0, 1, 2, 3, 4, 5]);
  connection.close();
});

test("drain gives back the credit", async () => {
  const connection = await trusted();
  const receiver = connection.open_receiver({ source: { address: place }, credit_window: 0 });
  let got = 0;
  receiver.on("message", () => got++);
  await happens(receiver, "receiver_open");
  receiver.drain_credit();
  receiver.add_credit(100);
  await happens(receiver, "receiver_drained");
  assert.equal(got, COUNT);
  connection.close();
});

test("an event that is not a batch, already settled", async () => {
  const connection = await trusted();
  const sender = connection.open_sender({ target: { address: "eh1/Partitions/1" }, snd_settle_mode: 1 });
  await happens(sender, "sendable");
  sender.send({ body: rhea.message.data_section(Buffer.from("7")) });
  assert.deepEqual(await bodies(connection, place.replace(/0$/, "1"), undefined, 1), [7]);
  connection.close();
});

test("a message that is none is rejected, and the link stays", async () => {
  const connection = await trusted();
  const sender = connection.open_sender("eh1/Partitions/1");
  await happens(sender, "sendable");
  sender.send(Buffer.from("nonsense"), undefined, 0x80013700);
  assert.equal((await happens(sender, "rejected", "accepted")).name, "rejected");
  sender.send({ body: rhea.message.data_section(Buffer.from("8")) });
  assert.equal((await happens(sender, "rejected", "accepted")).name, "accepted");
  connection.close();
});

// Requests to $management may bring a token of their own, as those of Azure's Java client do.
test("without a token only requests are taken, and refused", async () => {
  const connection = await connect();
  const sender = connection.open_sender("eh1");
  await happens(sender, "sender_error");
  assert.equal(sender.error.condition, "amqp:unauthorized-access");
  const reply = await ask(connection, "$management", { application_properties: {
    operation: "READ", type: "com.microsoft:eventhub", name: "eh1" }, body: [] });
  assert.equal(reply.application_properties["status-code"], 401);
  const receiver = connection.open_receiver(place);
  await happens(receiver, "receiver_error");
  assert.match(receiver.error.description, /^Unauthorized access\. 'Listen' claim/);
  connection.close();
});

test("a claim is for its audience and below", async () => {
  const connection = await connect();
  await putToken(connection, "sb://localhost/eh1/Partitions/1");
  await happens(connection.open_sender("eh1/Partitions/1"), "sendable");
  const bad = connection.open_sender("eh1/Partitions/0");
  await happens(bad, "sender_error");
  assert.match(bad.error.description, /'Send' claim\(s\) are required/);
  connection.close();
});

test("SASL PLAIN with a key needs no token", async () => {
  const connection = await connect({ username: "RootManageSharedAccessKey", password: "SAS_KEY_VALUE" });
  await happens(connection.open_sender("eh1"), "sendable");
  connection.close();
});

test("SASL PLAIN with a wrong key is not let in", async () => {
  for (const [username, password] of [["RootManageSharedAccessKey", "x"], ["x", "SAS_KEY_VALUE"]]) {
    const connection = rhea.create_container().connect({ ...server.road(), username, password });
    connection.on("disconnected", () => {});
    assert.equal((await happens(connection, "connection_error", "connection_open")).name, "connection_error");
  }
});

test("tokens that are refused, and how", async () => {
  const connection = await connect();
  const jwt = (await putToken(connection, "sb://localhost/eh1", "jwt", "a.b.c")).application_properties;
  assert.equal(jwt["status-code"], 401);
  assert.equal(jwt["error-condition"], "com.microsoft:auth-failed");
  const none = (await putToken(connection, "sb://localhost/eh1", undefined, "nonsense")).application_properties;
  assert.equal(none["status-code"], 401);
  assert.match(none["status-description"], /^MalformedToken/);
  connection.close();
});

test("no token in twenty seconds", { timeout: 40000, skip: withTls && "the time is the same with TLS" }, async () => {
  const started = Date.now();
  const connection = await connect();
  const { connection: { error } } = await happens(connection, "connection_error");
  assert.equal(error.condition, "amqp:unauthorized-access");
  assert.ok(Date.now() - started >= 19500);
});

test("a reply has the request's id, type and all", async () => {
  const connection = await connect();
  for (const id of ["text", rhea.types.wrap_ulong(7), rhea.types.wrap_uuid(rhea.string_to_uuid(rhea.generate_uuid()))]) {
    const reply = await ask(connection, "$cbs", { message_id: id, body: "x",
      application_properties: { operation: "put-token", type: "jwt", name: "sb://localhost/eh1" } });
    assert.deepEqual(reply.correlation_id, id.value ?? id);
  }
  connection.close();
});

test("a command that is none", async () => {
  const connection = await trusted();
  const reply = await ask(connection, "$management", { application_properties: {
    operation: "DELETE", name: "eh1", type: "com.microsoft:eventhub" } });
  assert.equal(reply.application_properties["error-condition"], "amqp:not-allowed");
  connection.close();
});

test("a server that stops says so", async () => {
  const own = await new Server(["eh1:1"]).start();
  const connection = rhea.create_container().connect({ ...own.road(), username: "a" });
  await happens(connection, "connection_open");
  const closed = happens(connection, "connection_error"), started = Date.now();
  assert.equal(await own.stop(), 0);
  assert.ok(Date.now() - started < 3000); // it did not have to wait for anybody
  assert.equal((await closed).connection.error.condition, "amqp:connection:forced");
  own.remove();
});

test("other protocols on the port", async () => {
  const [host, port] = server.amqp.split(":");
  for (const bytes of [Buffer.from("160301020001000001", "hex"), Buffer.from("AMQP\x00\x00\x09\x01"), Buffer.from("nonsense")]) {
    const socket = dial(Number(port), host);
    socket.on("error", () => {});
    socket.write(bytes);
    socket.resume();
    await happens(socket, "close");
  }
});
