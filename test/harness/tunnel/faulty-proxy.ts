/** A TCP proxy between an agent and its server, which simulates failures of the network. */
import { once } from "node:events";
import { connect, createServer, isIPv6, type AddressInfo, type Socket } from "node:net";

export interface FaultyProxy extends AsyncDisposable {
  url: string;
  /** How many connections it has accepted so far. */
  readonly connections: number;
  /** Ends every connection, like a router that restarts. */
  cut(): void;
  /** Stops forwarding on the open connections without closing them: neither end is notified. */
  freeze(): void;
}

/** @param at where it listens; the default is any port of 127.0.0.1. */
export async function startFaultyProxy(
  port: number,
  at = { host: "127.0.0.1", port: 0 },
): Promise<FaultyProxy> {
  const pairs = new Set<[Socket, Socket]>();
  let connections = 0;
  const server = createServer((near) => {
    connections += 1;
    const far = connect(port, "127.0.0.1");
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    for (const socket of pair) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  });
  server.listen(at);
  await once(server, "listening");

  function cut(): void {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  }

  return {
    url: `http://${isIPv6(at.host) ? `[${at.host}]` : at.host}:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    cut,
    freeze() {
      for (const pair of pairs) for (const socket of pair) socket.unpipe().pause();
    },
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
