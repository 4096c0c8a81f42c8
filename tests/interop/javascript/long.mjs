// long.mjs - what takes long: a quiet producer, a server that is killed, three processors.
import { exec, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { bodies, check, clock, numbered, pause, range, same, Skipped, stand, until } from "./frame.mjs";
import { checkpoints, EVERY } from "./leases.mjs";

const QUIET_S = 90, LOAD_S = 15, KILLS = 3, HALF = 2000;

async function quiet(client) {
  const producer = client.producer(), reader = client.reader({ partition: "0" });
  await producer.send([{ body: 0 }], { partition: "0" });
  await reader.has(1);
  await pause(QUIET_S);
  const passed = clock();
  await producer.send([{ body: 1 }], { partition: "0" });
  const seconds = passed();
  same("events", bodies(await reader.has(2)), [0, 1]);
  same("in the hub", (await client.producer().partition("0")).last, 1);
  check(seconds < 5, `the send after the silence took ${seconds.toFixed(1)} s`);
  return { seconds, text: `sent after ${seconds.toFixed(2)} s` };
}

// Sends numbers until the time is over; the program repeats what the client has given up.
async function publish(producer, first, over, account) {
  for (let n = first; !over(); n++) {
    for (;;) {
      const error = await producer.send([{ body: n }], { partition: "0" }).then(() => null, (reason) => reason);
      if (!error) break;
      account.givenUp++;
    }
    account.acknowledged.push(n);
  }
}

// With the default options a client does not send again soon after a kill. So that there is load at each of
// them, a producer of its own begins before the first one and after each.
async function load(client, road) {
  const account = { acknowledged: [], givenUp: 0 }, passed = clock(), over = () => passed() > LOAD_S;
  const producers = [];
  for (const k of range(0, KILLS + 1)) {
    producers.push(publish(client.producer(road), k * 1e6, over, account));
    await pause(LOAD_S / (KILLS + 1));
    if (k < KILLS) await promisify(exec)(stand("CRASH_RESTART"));
  }
  await Promise.all(producers);
  return account;
}

// Waits until a reader has got all of them.
async function hasAll(reader, wanted, what) {
  const missing = () => {
    const got = new Set(bodies(reader.events));
    return wanted.filter((n) => !got.has(n)).length;
  };
  await until(() => missing() === 0, 60);
  same(what, missing(), 0);
}

// In its default batches of one event the newer client would read for minutes what was sent.
async function crash(client) {
  const road = { crash: true }, all = { road, partition: "0", batch: 100 }, reader = client.reader(all);
  const { acknowledged, givenUp } = await load(client, road);
  check(acknowledged.length > KILLS, `only ${acknowledged.length} sends were acknowledged`);
  await hasAll(client.reader(all), acknowledged, "acknowledged and lost");
  await hasAll(reader, acknowledged, "not come to the reader that was there");
  const sends = `${acknowledged.length} acknowledged, none lost, ${givenUp} repeated by the program`;
  return { text: `${KILLS} kills, ${sends}` };
}

// A process of the client's processor, and what it has said.
class Copy {
  seen = [];

  constructor(id) {
    const program = new URL("processor.mjs", import.meta.url).pathname;
    // It ends when its standard input does, and so with us.
    this.child = spawn(process.execPath, [program, id], { stdio: ["pipe", "pipe", "inherit"] });
    this.ended = new Promise((resolve) => this.child.on("exit", resolve));
    createInterface({ input: this.child.stdout }).on("line", (line) => this.seen.push(line.split(" ").map(Number)));
  }

  kill() {
    this.child.kill("SIGKILL");
    return this.ended;
  }
}

async function sendRange(producer, first, end) {
  for (let n = first; n < end; n += 50) await producer.send(numbered(n, n + 50), { partition: String((n / 50) % 4) });
}

// Half of the events, in time with the processes: until each has got some, and so a partition.
async function firstHalf(producer, copies, passed) {
  for (let sent = 0; sent < HALF || !copies.every((copy) => copy.seen.length); await pause(0.5)) {
    check(passed() < 90, `not every process got a partition: ${copies.map((copy) => copy.seen.length)} events`);
    if (sent < HALF) await sendRange(producer, sent, (sent += 200));
    else await producer.send([{ body: -1 }], { partition: String(Math.floor(passed()) % 4) });
  }
}

async function processor(client) {
  if (!stand("BLOB")) throw new Skipped("there is no Azurite");
  const passed = clock(), producer = client.producer();
  const copies = range(0, 3).map(() => new Copy(client.id));
  const seen = () => new Set(copies.flatMap((copy) => copy.seen.map(([, body]) => body)));
  const missing = () => { const all = seen(); return range(0, 2 * HALF).filter((n) => !all.has(n)).length; };
  try {
    await firstHalf(producer, copies, passed);
    const partitions = copies.map((copy) => new Set(copy.seen.map(([id]) => id)).size);
    await copies[0].kill();
    await sendRange(producer, HALF, 2 * HALF);
    await until(() => missing() === 0, 120 - passed());
    same("events that were not processed", missing(), 0);
    const seconds = passed();
    await checkpointed(client, producer);
    const twice = copies.reduce((sum, copy) => sum + copy.seen.filter(([, body]) => body >= 0).length, 0) - 2 * HALF;
    const had = `processes had ${partitions.join(", ")} partitions`;
    return { seconds, text: `4,000 events, ${had}, one was killed, ${twice} events given twice` };
  } finally {
    await Promise.all(copies.map((copy) => copy.kill()));
  }
}

// Every partition has a checkpoint close to its end.
async function checkpointed(client, producer) {
  for (const id of ["0", "1", "2", "3"]) {
    const { last } = await producer.partition(id);
    let found;
    const done = async () => (found = (await checkpoints(client.id))[id]) > last - EVERY;
    for (const passed = clock(); !(await done()) && passed() < 10;) await pause(0.2);
    check(found > last - EVERY, `the checkpoint of partition ${id} is ${found}, its last event ${last}`);
  }
}

export const cases = { quiet, crash, processor };
