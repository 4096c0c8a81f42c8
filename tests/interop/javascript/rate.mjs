// rate.mjs - how fast the events of one partition come. They are counted, not kept.
import { check, clock, same, until } from "./frame.mjs";

const EVENTS = Number(process.env.STAND_EVENTS ?? 200000), LIMIT_S = Number(process.env.STAND_LIMIT ?? 200);
const QUIET_S = 15; // without an event: no more will come
const LARGE = 1000;

// From the first ones that the client hands over to the last ones.
async function measure(client, prefetch, options) {
  const passed = clock(), reader = client.reader({ hub: "rate", partition: "0", ...options });
  let count = 0, first = 0, began = 0, last = 0, faults = 0;
  reader.take = (events) => {
    if (!events.length) return;
    last = passed();
    if (!count) [first, began] = [events.length, last];
    for (const { sequence } of events) faults += sequence !== count++;
  };
  const quiet = () => passed() - last > QUIET_S;
  await until(() => count >= EVENTS || reader.errors.length || quiet(), LIMIT_S);
  const stopped = reader.errors.length || (quiet() && count < EVENTS) || count === first;
  check(!stopped, `stopped after ${count} events ${reader.errors[0]?.message ?? ""}`);
  same("events out of order", faults, 0);
  const seconds = last - began;
  return { seconds, text: `${count - first} events in ${seconds.toFixed(3)} s, prefetch ${prefetch}` };
}

export const cases = {
  // In its default batches of one event the newer client waits 20 ms for every three of them.
  "rate": (client) => measure(client, client.prefetch, {}),
  "rate-large": (client) => measure(client, 3 * LARGE, { batch: LARGE }),
};
