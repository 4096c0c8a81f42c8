// runner.mjs CLIENT CASE... - runs common cases with one of Azure's JavaScript clients, see ../CASES.md.
import { Absent, clock, OwnFault, pause, Skipped } from "./frame.mjs";
import * as bodyCases from "./body.mjs";
import * as longCases from "./long.mjs";
import * as rateCases from "./rate.mjs";
import * as readCases from "./read.mjs";
import * as refuseCases from "./refuse.mjs";
import * as roadCases from "./road.mjs";
import * as sendCases from "./send.mjs";

const AT_ONCE = 4; // most of a case is waiting
const LIMIT_S = 240;
const SHUT_S = 20;
const MODULES = { js: "./new.mjs", "js-old": "./old.mjs" };
const cases = Object.assign({}, ...[bodyCases, longCases, rateCases, readCases, refuseCases, roadCases, sendCases]
  .map((room) => room.cases));

const [id, ...names] = process.argv.slice(2);
const { Client, prefetch } = await import(MODULES[id]);

function say(name, status, seconds, text) {
  console.log(name, status, seconds.toFixed(2), text.replace(/\s+/g, " ").slice(0, 400));
}

const statuses = new Map([[Absent, "absent"], [OwnFault, "own-fault"], [Skipped, "skipped"]]);

async function late() {
  await pause(LIMIT_S);
  throw new Error(`not done in ${LIMIT_S} s`);
}

async function runCase(name) {
  const passed = clock(), client = new Client(name);
  Object.assign(client, { id, prefetch });
  try {
    if (!cases[name]) throw new Error("there is no such case here");
    const { seconds, text } = (await Promise.race([cases[name](client), late()])) ?? {};
    say(name, "pass", seconds ?? passed(), text ?? "");
  } catch (error) {
    const status = statuses.get(error.constructor) ?? "fail";
    if (status === "fail") console.error(error);
    say(name, status, passed(), error.message);
  }
  await Promise.race([client.close().catch((error) => console.error(`closing ${name}: ${error.message}`)), pause(SHUT_S)]);
}

// What takes long goes beside the others from the beginning.
const long = names.filter((name) => longCases.cases[name]);
const quick = names.filter((name) => !longCases.cases[name]);
async function runQuick() {
  while (quick.length) await runCase(quick.shift());
}
process.on("unhandledRejection", (error) => console.error("# unhandled:", error));
await Promise.all([...long.map(runCase), ...Array.from({ length: AT_ONCE }, runQuick)]);
process.exit(0); // whatever the client has left behind
