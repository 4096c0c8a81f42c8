// road.mjs - a way to the server that can be broken: a proxy of bytes, so TLS passes through it.
import { connect, createServer } from "node:net";

export class Road {
  constructor(port) {
    this.to = port;
    this.pairs = new Set();
    this.cuts = 0;
  }

  async open() {
    this.listener = createServer((near) => {
      if (this.shut) return near.destroy();
      const far = connect(this.to, "127.0.0.1"), pair = [near, far];
      this.pairs.add(pair);
      for (const [from, to] of [[near, far], [far, near]]) {
        from.setNoDelay(true);
        from.on("data", (bytes) => to.write(bytes));
        from.on("error", () => {});
        from.on("close", () => { to.destroy(); this.pairs.delete(pair); });
      }
    });
    await new Promise((resolve) => this.listener.listen(0, "127.0.0.1", resolve));
    return this.listener.address().port;
  }

  // Breaks every connection there is, in the middle of whatever it is doing: with a reset.
  cut() {
    for (const pair of this.pairs) for (const socket of pair) socket.resetAndDestroy();
    this.cuts++;
  }

  close() {
    this.cut();
    return new Promise((resolve) => this.listener.close(resolve));
  }
}
