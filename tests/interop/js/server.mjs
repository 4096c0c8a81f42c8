// server.mjs - weir serve as a child process, and clients for it. With WEIR_TEST_TLS=1 every client
// comes with TLS, as it does out of the box: so each test can be run both ways.
import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventHubBufferedProducerClient, EventHubConsumerClient, EventHubProducerClient } from "@azure/event-hubs";

const READY_MS = 20000;
const scratch = process.env.TMPDIR ?? tmpdir();
const { WEIR_TEST_CERTIFICATE: certificate, WEIR_TEST_KEY: key } = process.env;

export const withTls = process.env.WEIR_TEST_TLS === "1";

// What a failure costs: no retries, which would wait half a minute each.
export const once = { retryOptions: { maxRetries: 0, timeoutInMs: 60000 } };

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits for something to become true; the time-out of the test is the limit.
export async function until(what) {
  while (!(await what())) await pause(10);
}

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
  constructor(hubs = ["eh1:4:cg1"], tls = withTls) {
    this.hubs = hubs;
    this.tls = tls;
    this.more = []; // other options
    this.amqp = this.amqps = "127.0.0.1:0";
    process.once("exit", () => this.child?.kill("SIGKILL")); // whatever became of the test
    this.data = mkdtempSync(join(scratch, "weir-js-"));
  }

  async start() {
    const hubs = this.hubs.flatMap((hub) => ["--hub", hub]);
    const own = ["--amqps", this.amqps, "--tls-certificate", certificate, "--tls-key", key];
    const tls = this.tls ? own : this.more.includes("--amqps") ? [] : ["--amqps", "off"];
    this.child = spawn(process.env.WEIR ?? "weir", ["serve", "--data", this.data, "--json",
      "--amqp", this.amqp, "--http", "127.0.0.1:0", ...tls, ...hubs, ...this.more], {
      stdio: ["ignore", "pipe", "pipe"], // its own, so that nobody waits for it when the test has died
    });
    this.child.stderr.pipe(process.stderr);
    appendFileSync(join(scratch, "servers"), `${this.child.pid}\n`);
    this.exited = new Promise((resolve) =>
      this.child.on("exit", (code, signal) => resolve(code ?? signal)),
    );
    this.ready = await firstLine(this.child);
    this.amqp = this.ready.amqp;
    if (this.tls) this.amqps = this.ready.amqps;
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

  // Where clients go: the port, or the one of something between.
  get port() {
    return this.detour ?? Number((this.tls ? this.amqps : this.amqp).split(":")[1]);
  }

  // What weir serve printed, or the same with other credentials.
  string(credentials) {
    const mine = credentials ??
      "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE";
    if (this.tls) return `Endpoint=sb://localhost/;${mine}`;
    if (!credentials && !this.detour) return this.ready.connection_string;
    return `Endpoint=sb://localhost:${this.port};${mine};UseDevelopmentEmulator=true`;
  }

  // TLS goes to 5671 unless it is told another place.
  options(options = once) {
    return this.tls ? { ...options, customEndpointAddress: `sb://localhost:${this.port}` } : options;
  }

  producer(hub = "eh1", options = once, credentials = undefined) {
    return new EventHubProducerClient(this.string(credentials), hub, this.options(options));
  }

  buffered(hub, options) {
    return new EventHubBufferedProducerClient(this.string(), hub, this.options(options));
  }

  consumer(group = "$Default", hub = "eh1", options = once, store = undefined) {
    const last = store ? [store, this.options(options)] : [this.options(options)];
    return new EventHubConsumerClient(group, this.string(), hub, ...last);
  }

  // The same for rhea.
  road() {
    const road = { host: "localhost", port: this.port, reconnect: false };
    return this.tls ? { ...road, transport: "tls", servername: "localhost" } : road;
  }
}

// Takes `count` events of one partition, or of all, and then closes the subscription.
export function receive(client, count, partition, options = {}, timeoutMs = 60000) {
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
