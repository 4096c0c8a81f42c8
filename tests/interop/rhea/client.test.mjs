// Our client, by its commands, at a hub of somebody else's making: what it says on the wire is
// understood by rhea, and it understands rhea.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { Hub } from "./hub.mjs";

const BATCH_FORMAT = 0x80013700;
const COUNT = 250;
const numbers = Array.from({ length: COUNT }, (_, i) => `line ${i}`);

// weir ARGS..., to its end.
async function weir(hub, input, command, ...more) {
  const args = [command, "eh1", "--connect", hub.string, "--timeout", "30s", ...more];
  const child = spawn(process.env.WEIR ?? "weir", args, { stdio: "pipe" });
  child.stdin.end(input);
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code, err, lines: out.split("\n").slice(0, -1) };
}

async function withHub(options, work) {
  const hub = await new Hub(options).start();
  try {
    await work(hub);
    assert.deepEqual(hub.errors, []);
  } finally {
    hub.stop();
  }
}

for (const websocket of [false, true])
  test(`batches go out and come back${websocket ? ", inside a WebSocket" : ""}`, () =>
    withHub({ websocket }, async (hub) => {
      const sent = await weir(hub, numbers.join("\n") + "\n", "send", "--key", "home-7", "--property", "a=b");
      assert.equal(sent.code, 0, sent.err);
      assert.deepEqual(sent.lines, [`acknowledged ${COUNT} events`]);
      assert.ok(hub.batches.length < COUNT); // many at a time
      assert.ok(hub.batches.every((b) => b.format === BATCH_FORMAT && b.key === "home-7"));
      assert.equal(hub.log[0].length, COUNT);
      assert.deepEqual(hub.log[0][0].application_properties, { a: "b" });

      const got = await weir(hub, "", "tail", "--partition", "0", "--count", String(COUNT), "--json");
      assert.equal(got.code, 0, got.err);
      const events = got.lines.map((line) => JSON.parse(line));
      assert.deepEqual(events.map((e) => e.body), numbers);
      assert.deepEqual(events.map((e) => e.sequence), numbers.map((_, i) => i));
      assert.ok(events.every((e) => e.key === "home-7" && e.properties.a === "b" && e.partition === "0"));

      // All partitions, up to the end: $management says how many there are and where that is.
      const all = await weir(hub, "", "tail", "--until-end");
      assert.equal(all.code, 0, all.err);
      assert.deepEqual(all.lines, numbers);

      assert.ok(hub.tokens.length >= 3 && hub.tokens.every((t) => t.good));
      assert.ok(hub.tokens.every((t) => t.audience.startsWith("sb://localhost/eh1")));
      assert.ok(hub.hostnames.every((name) => name === "localhost"));
      assert.ok(hub.protocols.every((name) => name === "AMQPWSB10"));
      assert.equal(hub.protocols.length, websocket ? 3 : 0);
    }));

test("what is rejected is told with its reason", () =>
  withHub({}, async (hub) => {
    hub.refusal = { condition: "amqp:not-allowed", description: "not on a Monday" };
    const sent = await weir(hub, "x\n", "send", "--partition", "1");
    assert.notEqual(sent.code, 0);
    assert.match(sent.err, /not on a Monday/);
    assert.equal(hub.batches.length, 1); // and not tried again
  }));

for (const websocket of [false, true])
  test(`a reader goes on behind what it has${websocket ? ", inside a WebSocket" : ""}`, () =>
    withHub({ websocket }, async (hub) => {
      const sent = await weir(hub, numbers.join("\n") + "\n", "send", "--partition", "1");
      assert.equal(sent.code, 0, sent.err);
      hub.cutAfter = 100;
      const got = await weir(hub, "", "tail", "--partition", "1", "--count", String(COUNT));
      assert.equal(got.code, 0, got.err);
      assert.deepEqual(got.lines, numbers);
      assert.deepEqual(hub.selectors, ["amqp.annotation.x-opt-offset > '-1'",
        "amqp.annotation.x-opt-sequence-number > '99'"]);
    }));
