// road.mjs - the ways to the server: TLS, WebSocket, the emulator's string.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { bodies, check, numbered, range, same } from "./frame.mjs";

async function thereAndBack(client, via) {
  const producer = client.producer({ via });
  same("name", (await producer.hub()).name, client.hub);
  await producer.send(numbered(0, 10), { partition: "0" });
  same("events", bodies(await client.reader({ road: { via }, partition: "0" }).has(10)), range(0, 10));
}

// The same in a process that does not know the authority must fail, and say why.
async function strangersFail(client, via) {
  const { NODE_EXTRA_CA_CERTS, ...env } = process.env;
  if (!NODE_EXTRA_CA_CERTS) return; // this is it
  const program = new URL("runner.mjs", import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(process.execPath, [program, client.id, via], { env });
  check(/^\S+ fail .*certificate/.test(stdout), `without the authority: ${stdout}`);
}

const secret = (via) => async (client) => {
  await thereAndBack(client, via);
  await strangersFail(client, via);
};

export const cases = {
  tls: secret("tls"), websocket: secret("websocket"), emulator: (client) => thereAndBack(client, "emulator"),
};
