// read.mjs - reading much, from every position, and against other readers.
import { bodies, check, clock, numbered, pause, range, same, until } from "./frame.mjs";

async function sendNumbers(client, count) {
  const producer = client.producer();
  for (let n = 0; n < count; n += 500)
    await producer.send(numbered(n, Math.min(n + 500, count)), { partition: "0" });
  return producer;
}

async function readMany(client) {
  const count = Math.max(10 * client.prefetch + 50, 3050);
  await sendNumbers(client, count);
  const passed = clock(), got = await client.reader({ partition: "0" }).has(count, 60);
  const text = `${count} events in ${passed().toFixed(1)} s`;
  same("events", bodies(got), range(0, count));
  same("sequence numbers", got.map((event) => event.sequence), range(0, count));
  return { text };
}

async function startEarliest(client) {
  await sendNumbers(client, 20);
  same("events", bodies(await client.reader({ partition: "0" }).has(20)), range(0, 20));
}

// It is attached when events begin to come: it is sent some until one does.
async function startLatest(client) {
  const producer = await sendNumbers(client, 20), reader = client.reader({ partition: "0", from: "latest" });
  let n = 99;
  do {
    check(++n < 200, "nothing came");
    await producer.send([{ body: n }], { partition: "0" });
  } while (!(await until(() => reader.events.length, 0.3)));
  await producer.send([{ body: 999 }], { partition: "0" });
  await until(() => bodies(reader.events).includes(999));
  const got = bodies(reader.events);
  check(got[0] >= 100, `event ${got[0]} of before came`);
  same("events", got, [...range(got[0], n + 1), 999]);
}

// What comes first from a position, and everything behind it.
async function begins(client, from, first, what) {
  const reader = client.reader({ partition: "0", from });
  same(what, bodies(await reader.has(20 - first)), range(first, 20));
  await reader.close();
}

async function starts(client, position) {
  await sendNumbers(client, 20);
  const events = await client.reader({ partition: "0" }).has(20);
  for (const at of [0, 7, 18]) {
    await begins(client, { ...position(events[at]), inclusive: true }, at, `with event ${at}`);
    await begins(client, position(events[at]), at + 1, `behind event ${at}`);
  }
}

const startOffset = (client) => starts(client, (event) => ({ offset: event.offset }));
const startSequence = (client) => starts(client, (event) => ({ sequence: event.sequence }));

async function startTime(client) {
  const producer = await sendNumbers(client, 10);
  await pause(0.05); // so that there is a time between
  await producer.send(numbered(10, 20), { partition: "0" });
  const events = await client.reader({ partition: "0" }).has(20), time = (n) => events[n].time.getTime();
  await begins(client, { time: new Date((time(9) + time(10)) / 2) }, 10, "between two events");
  await begins(client, { time: new Date(time(0) - 3600e3) }, 0, "an hour before");
}

async function epochHigher(client) {
  await sendNumbers(client, 5);
  const low = client.reader({ partition: "0", epoch: 1 });
  await low.has(5);
  const passed = clock(), high = client.reader({ partition: "0", epoch: 2 });
  await high.has(5);
  check(await until(() => low.errors.length, 10), "the reader of epoch 1 was not told in 10 s");
  const [error] = low.errors, name = error.code ?? error.name;
  same("told", name, "ReceiverDisconnectedError");
  check(/epoch/i.test(error.message), error.message);
  return { text: `${name} after ${passed().toFixed(1)} s` };
}

async function epochLower(client) {
  await sendNumbers(client, 5);
  const high = client.reader({ partition: "0", epoch: 2 });
  await high.has(5);
  const told = [];
  for (const epoch of [1, undefined]) told.push(await client.reader({ partition: "0", epoch }).refused(/epoch/i));
  same("errors of epoch 2", high.errors, []);
  return { text: told.map(({ text }) => text).join(", ") };
}

async function sixthReader(client) {
  await sendNumbers(client, 5);
  const five = range(0, 5).map(() => client.reader({ partition: "0" }));
  for (const reader of five) await reader.has(5);
  const { text } = await client.reader({ partition: "0" }).refused(/quota|maximum number of allowed receivers/i);
  same("errors of the five", five.flatMap((reader) => reader.errors), []);
  return { text };
}

async function metrics(client) {
  await sendNumbers(client, 20);
  const reader = client.reader({ partition: "0", metrics: true }), events = await reader.has(20);
  await until(() => reader.last?.sequenceNumber !== undefined);
  const { sequenceNumber, offset, enqueuedOn, retrievedOn } = reader.last;
  same("sequence number and offset", [sequenceNumber, String(offset)], [19, String(events[19].offset)]);
  same("time", new Date(enqueuedOn), events[19].time);
  check(Math.abs(Date.now() - retrievedOn) < 3600e3, `retrieved ${retrievedOn}`);
}

export const cases = {
  "read-many": readMany, "start-earliest": startEarliest, "start-latest": startLatest, "start-offset": startOffset,
  "start-sequence": startSequence, "start-time": startTime, "epoch-higher": epochHigher, "epoch-lower": epochLower,
  "sixth-reader": sixthReader, metrics,
};
