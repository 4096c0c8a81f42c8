// subscribe.mjs CONNECTION HUB EVENTS SECONDS - Azure's own processor for the figures of tests/show:
// EventHubConsumerClient.subscribe with its store in memory, batches of 1,000 and a checkpoint after
// each. Ends when it has so many events, or so long after the first of them, and prints a line of
// JSON. Only what comes exactly once, in order, from the first event of a partition on, counts.
import { earliestEventPosition, EventHubConsumerClient } from "@azure/event-hubs";
import { InMemoryCheckpointStore } from "./node_modules/@azure/event-hubs/dist/esm/inMemoryCheckpointStore.js";

const [connection, hub, events, seconds] = process.argv.slice(2);
const LATE_MS = 60000; // without a first event
const wanted = Number(events);
const seen = new Map(); // partition: how many
let count = 0, bytes = 0, sum = 0, faults = 0, first, last;

const client = new EventHubConsumerClient("$Default", connection, hub, new InMemoryCheckpointStore(), {
  loadBalancingOptions: { strategy: "greedy" },
});
const { promise: over, resolve: end } = (() => {
  let resolve;
  return { promise: new Promise((r) => { resolve = r; }), resolve };
})();
const late = setTimeout(end, LATE_MS);
const subscription = client.subscribe({
  processEvents: async (list, context) => {
    if (!list.length) return;
    if (first === undefined) {
      first = performance.now();
      clearTimeout(late);
      setTimeout(end, Number(seconds) * 1000);
    }
    let n = seen.get(context.partitionId) ?? 0;
    for (const event of list) {
      if (event.sequenceNumber !== n) faults++;
      n++;
      bytes += event.body.length;
      sum += event.sequenceNumber;
    }
    seen.set(context.partitionId, n);
    count += list.length;
    last = performance.now();
    await context.updateCheckpoint(list.at(-1));
    if (count >= wanted) end();
  },
  processError: async (error) => {
    console.error(error.message);
    faults++;
  },
}, { startPosition: earliestEventPosition, maxBatchSize: 1000, maxWaitTimeInSeconds: 1 });

await over;
const cpu = process.cpuUsage();
const result = {
  events: count, bytes, sum,
  sum_wanted: [...seen.values()].reduce((all, n) => all + (n * (n - 1)) / 2, 0),
  faults, partitions: seen.size, seconds: Number(((last - first) / 1000).toFixed(3)),
  events_per_s: Math.round(count / ((last - first) / 1000)),
  cpu_ns: Math.round(((cpu.user + cpu.system) * 1000) / count),
};
console.log(JSON.stringify(result));
// What is under way when it closes is not counted, nor waited for.
Promise.race([subscription.close().then(() => client.close()), new Promise((r) => setTimeout(r, 5000))])
  .then(() => process.exit(result.sum === result.sum_wanted && faults === 0 && count > 0 ? 0 : 1));
