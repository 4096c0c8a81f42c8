// frame.mjs - what the cases and the two clients share: how a case ends, waiting, the stand's places.
import { createRequire } from "node:module";
import { isDeepStrictEqual } from "node:util";

// The client does not have such a thing; it fails by its own fault; it could not be run here.
export class Absent extends Error {}
export class OwnFault extends Error {}
export class Skipped extends Error {}
// The program was not told in time.
export class Late extends Error {}

// Packages are in the cache, outside the tree.
export const load = createRequire(`${process.env.PACKAGES}/`);

export function check(truth, text) {
  if (!truth) throw new Error(text);
}

const shown = (value) => (JSON.stringify(value) ?? String(value)).slice(0, 200);

export function same(what, got, wanted) {
  check(isDeepStrictEqual(got, wanted), `${what}: ${shown(got)} instead of ${shown(wanted)}`);
}

export const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

export function clock() {
  const began = performance.now();
  return () => (performance.now() - began) / 1000;
}

// Whether something became true in time.
export async function until(what, seconds = 20) {
  const passed = clock();
  while (!what()) {
    if (passed() > seconds) return false;
    await pause(0.005);
  }
  return true;
}

const TOLD_S = 10;

// An error must name the fault. The name that a program knows it by, and when it came.
function told(error, seconds, named) {
  const name = error.code ?? error.name, text = `${name} ${error.message}`;
  check(named.test(text), `told: ${text}`);
  return { seconds, text: `${name} after ${seconds.toFixed(1)} s` };
}

// What a promise ends with in time must be an error that names the fault.
export async function refused(promise, named) {
  const passed = clock(), late = new Late(`not told in ${TOLD_S} s`);
  const outcome = promise.then(() => new Error("it was not refused"), (error) => told(error, passed(), named));
  const first = await Promise.race([outcome, pause(TOLD_S).then(() => late)]);
  if (first instanceof Error) throw first;
  return first;
}

export const credentials = (string) => /SharedAccessKeyName=.*?;SharedAccessKey=[^;]*/.exec(string)[0];
export const stand = (name) => process.env[`STAND_${name}`];
export const range = (first, end) => Array.from({ length: end - first }, (_, n) => first + n);

// What a program gets of one partition, or of all: events, each with its partition, and errors.
export class Reader {
  events = [];
  errors = [];

  // What the client hands over at once.
  take(events) {
    this.events.push(...events);
  }

  // The first events, when as many have come.
  async has(count, seconds = 20) {
    await until(() => this.events.length >= count || this.errors.length, seconds);
    check(this.events.length >= count,
      `${this.events.length} of ${count} events in ${seconds} s, errors: ${this.errors.map((e) => e.message)}`);
    return this.events;
  }

  // The first error must come in time and name the fault.
  async refused(named) {
    const passed = clock();
    if (!(await until(() => this.errors.length, TOLD_S))) throw new Late(`not told in ${TOLD_S} s`);
    const seen = told(this.errors[0], passed(), named);
    check(this.events.length === 0, "events came all the same");
    return seen;
  }
}

export const bodies = (events) => events.map((event) => event.body);
export const numbered = (first, end) => range(first, end).map((n) => ({ body: n }));

// Ends a case of what the client does not have: none of the names that its classes offer speaks of it.
export function lacks(pattern, ...classes) {
  const names = classes.map(({ name, prototype }) => {
    const mine = Object.getOwnPropertyNames(prototype).filter((word) => /^[a-z]/.test(word) && word !== "constructor");
    return `${name} has only ${mine.join(" ")}`;
  });
  check(!names.some((text) => pattern.test(text)), `the client may have it now: ${names}`);
  throw new Absent(names.join("; "));
}
