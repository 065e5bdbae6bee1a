/** A TCP relay between an agent and its server, for the faults of a network. */
import { once } from "node:events";
import { connect, createServer, isIPv6, type AddressInfo, type Socket } from "node:net";

export interface FaultyProxy extends AsyncDisposable {
  url: string;
  /** How many connections were made over it so far. */
  readonly connections: number;
  /** Ends every connection, as a router that restarts. */
  cut(): void;
  /** Forwards nothing more on the connections there are and keeps them: neither end is told. */
  freeze(): void;
}

/** @param at where it listens: any port of 127.0.0.1 when left out. */
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
