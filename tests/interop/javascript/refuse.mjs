// refuse.mjs - what is not allowed or not there, with the time until the program is told.
import { bodies, check, credentials, Late, load, numbered, OwnFault, refused, same, stand } from "./frame.mjs";

const UNAUTHORIZED = /InvalidSignature|unauthori[sz]ed/i;
const MISSING = /not-?found|could not be found/i;
const OUTSIDE = /out-?of-?range/i;

// A send that is given up when nobody waits for it any more.
const trySend = (client, road, named, partition = undefined, hub = client.hub) =>
  refused(client.producer(road, hub).send(numbered(0, 1), { partition, signal: AbortSignal.timeout(11000) }), named);

const tryRead = (client, road, named, more = {}) => client.reader({ road, partition: "0", ...more }).refused(named);

const both = (...seen) => ({
  seconds: Math.max(...seen.map(({ seconds }) => seconds)), text: seen.map(({ text }) => text).join(", "),
});

// The newer client repeats by default what is not authorised, and keeps silent until it gives up. That
// is its own fault when it can be shown to be told in time, and to take the error for a passing one.
async function unauthorized(client, attempt, road) {
  try {
    return await attempt(client, road, UNAUTHORIZED);
  } catch (reason) {
    if (!(reason instanceof Late) || client.id !== "js") throw reason;
    const { text } = await attempt(client, { ...road, retryOptions: { maxRetries: 0 } }, UNAUTHORIZED);
    const error = { condition: "amqp:unauthorized-access", description: "refused" };
    check(load("@azure/core-amqp").translate(error).retryable, "the client does not take it for a passing error, but does not tell");
    throw new OwnFault(`without retries ${text}; by default not in 10 s, since retryableErrors in errors.js of ` +
      "@azure/core-amqp has UnauthorizedError, and a retry waits 30 s");
  }
}

async function listenOnly(client) {
  const road = { key: credentials(stand("LISTEN")) };
  await client.producer().send(numbered(0, 5), { partition: "0" });
  same("events", bodies(await client.reader({ road, partition: "0" }).has(5)), [0, 1, 2, 3, 4]);
  const { text } = await unauthorized(client, trySend, road);
  return { text };
}

async function sendOnly(client) {
  const road = { key: credentials(stand("SEND")) };
  await client.producer(road).send(numbered(0, 5), { partition: "0" });
  same("events", bodies(await client.reader({ partition: "0" }).has(5)), [0, 1, 2, 3, 4]);
  const { text } = await unauthorized(client, tryRead, road);
  return { text };
}

async function wrongKey(client) {
  const road = { key: credentials(stand("STRING")).replace(/SharedAccessKey=.*/, "SharedAccessKey=another") };
  return both(...await Promise.all([trySend, tryRead].map((attempt) => unauthorized(client, attempt, road))));
}

async function missingHub(client) {
  const hub = "nothing";
  return both(await trySend(client, {}, MISSING, undefined, hub), await tryRead(client, {}, MISSING, { hub }));
}

const missingGroup = (client) => tryRead(client, {}, MISSING, { group: "nobody" });

async function missingPartition(client) {
  return both(await trySend(client, {}, OUTSIDE, "99"), await tryRead(client, {}, OUTSIDE, { partition: "99" }));
}

export const cases = {
  "listen-only": listenOnly, "send-only": sendOnly, "wrong-key": wrongKey, "missing-hub": missingHub,
  "missing-group": missingGroup, "missing-partition": missingPartition,
};
