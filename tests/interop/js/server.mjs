// server.mjs - weir serve as a child process, and clients for it.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventHubConsumerClient, EventHubProducerClient } from "@azure/event-hubs";

const READY_MS = 20000;

// What a failure costs: no retries, which would wait half a minute each.
export const once = { retryOptions: { maxRetries: 0, timeoutInMs: 10000 } };

function firstLine(child) {
  return new Promise((resolve, reject) => {
    let text = "";
    const late = setTimeout(() => reject(new Error("not ready in time")), READY_MS);
    child.stdout.on("data", (data) => {
      text += data;
      if (!text.includes("\n")) return;
      clearTimeout(late);
      resolve(JSON.parse(text.slice(0, text.indexOf("\n"))));
    });
    child.on("exit", (code, signal) => {
      clearTimeout(late);
      reject(new Error(`weir serve ended before it was ready: ${code ?? signal}`));
    });
  });
}

// A server on free ports, or on those that it had before; its folder stays over restarts.
export class Server {
  constructor(hubs = ["eh1:4:cg1"], amqp = "127.0.0.1:0") {
    this.hubs = hubs;
    this.more = []; // other options
    this.amqp = amqp;
    process.once("exit", () => this.child?.kill("SIGKILL")); // whatever became of the test
    this.data = mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), "weir-js-"));
  }

  async start() {
    const hubs = this.hubs.flatMap((hub) => ["--hub", hub]);
    const args = ["serve", "--data", this.data, "--json", "--amqp", this.amqp];
    this.child = spawn(process.env.WEIR ?? "weir", [...args, "--http", "127.0.0.1:0", ...hubs, ...this.more], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.exited = new Promise((resolve) =>
      this.child.on("exit", (code, signal) => resolve(code ?? signal)),
    );
    this.ready = await firstLine(this.child);
    this.amqp = this.ready.amqp;
    this.connectionString = this.ready.connection_string;
    return this;
  }

  kill() {
    this.child.kill("SIGKILL");
    return this.exited;
  }

  stop() {
    this.child.kill("SIGTERM");
    return this.exited;
  }

  remove() {
    rmSync(this.data, { recursive: true, force: true });
  }

  producer(hub = "eh1", options = once) {
    return new EventHubProducerClient(this.connectionString, hub, options);
  }

  consumer(group = "$Default", hub = "eh1", options = once) {
    return new EventHubConsumerClient(group, this.connectionString, hub, options);
  }
}

// Takes `count` events of one partition, or of all, and then closes the subscription.
export function receive(client, count, partition, options = {}, timeoutMs = 20000) {
  const got = [];
  return new Promise((resolve, reject) => {
    let subscription;
    const end = (finish) => {
      clearTimeout(late);
      subscription.close().then(finish, reject);
    };
    const late = setTimeout(
      () => end(() => reject(new Error(`${got.length} of ${count} events came in time`))),
      timeoutMs,
    );
    const handlers = {
      processEvents: async (events, context) => {
        for (const event of events) got.push({ ...event, partition: context.partitionId, context });
        if (got.length >= count) end(() => resolve(got));
      },
      processError: async (error) => end(() => reject(error)),
    };
    const all = { maxWaitTimeInSeconds: 1, ...options };
    subscription =
      partition === undefined
        ? client.subscribe(handlers, all)
        : client.subscribe(partition, handlers, all);
  });
}

// The error that a promise ends with.
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}
