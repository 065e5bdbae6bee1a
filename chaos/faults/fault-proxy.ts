/** A TCP proxy that behaves like a bad network: slow, in small parts, with stalls, resets and half-open connections. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { formatHostAndPort } from "../../shared/hosts.ts";
import { createRandom, type Random } from "../../test/harness/random.ts";
import { waitForDrain } from "../backpressure.ts";

/** What happens to the bytes of every connection, in both directions. */
export interface NetworkConditions {
  /** Each part arrives this much later, with up to `jitterMs` in addition. Order is kept. */
  latencyMs: number;
  jitterMs: number;
  /** The most bytes that arrive at once. 0: as many as were sent. */
  sliceBytes: number;
  /** 0: unlimited. */
  bytesPerSecond: number;
  /** Percentage of parts that are delayed by `STALL_MS`, as after a lost packet. */
  stallPercent: number;
  /** How many of a thousand parts reset the connection instead of arriving. */
  resetPerMille: number;
}

export const GOOD_NETWORK: NetworkConditions = {
  latencyMs: 0,
  jitterMs: 0,
  sliceBytes: 0,
  bytesPerSecond: 0,
  stallPercent: 0,
  resetPerMille: 0,
};

/** How long a lost packet holds back what follows: the least time after which TCP sends it again, doubled once. */
const STALL_MS = 400;
/** A connection that holds this much for its reader stops reading from its writer. */
const QUEUE_MAX_BYTES = 256 * 1024;
const CONNECT_RETRY_MS = 50;

interface FaultProxyOptions {
  /** Where it listens. Default: any port of 127.0.0.1. */
  at?: { host: string; port: number };
  random?: Random;
  /** How long a new connection waits for a server that does not listen. Default: it is reset at once. */
  connectMaxMs?: number;
  conditions?: NetworkConditions;
}

export interface FaultProxy extends AsyncDisposable {
  port: number;
  url: string;
  /** How many connections it has accepted so far. */
  readonly acceptedConnections: number;
  readonly openConnections: number;
  /** Applies to open connections too, from their next part on. */
  setConditions(conditions: NetworkConditions): void;
  /** Makes the open connections half-open: nothing is forwarded from now on, and neither end is notified. */
  freeze(): void;
  /** Closes all connections without a reset, frozen ones included, like a router that restarts. */
  cut(): void;
  /** Resets all connections, frozen ones included. */
  reset(): void;
}

/** @param target the port of the server behind it, at 127.0.0.1. */
export async function startFaultProxy(
  target: number,
  {
    at = { host: "127.0.0.1", port: 0 },
    random = createRandom(0),
    connectMaxMs = 0,
    conditions = GOOD_NETWORK,
  }: FaultProxyOptions = {},
): Promise<FaultProxy> {
  const network = { conditions, random };
  const pairs = new Set<SocketPair>();
  let acceptedConnections = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    acceptedConnections += 1;
    near.on("error", () => undefined);
    near.pause();
    void connectWithRetries(target, near, connectMaxMs).then((far) => {
      if (!far) return void near.resetAndDestroy();
      const pair = new SocketPair(near, far, network);
      pairs.add(pair);
      void pair.closed.then(() => pairs.delete(pair));
    });
  });
  server.listen(at);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  function reset(): void {
    for (const pair of pairs) pair.reset();
  }

  return {
    port,
    url: `http://${formatHostAndPort(at.host, port)}`,
    get acceptedConnections() {
      return acceptedConnections;
    },
    get openConnections() {
      return pairs.size;
    },
    setConditions(changed) {
      network.conditions = changed;
    },
    freeze() {
      for (const pair of pairs) pair.freeze();
    },
    cut() {
      for (const pair of pairs) pair.cut();
    },
    reset,
    async [Symbol.asyncDispose]() {
      reset();
      server.close();
      await once(server, "close");
    },
  };
}

async function connectWithRetries(
  port: number,
  near: Socket,
  maxMs: number,
): Promise<Socket | undefined> {
  const deadline = performance.now() + maxMs;
  for (;;) {
    const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    try {
      await once(far, "connect");
      return far;
    } catch {
      if (near.destroyed || performance.now() >= deadline) return undefined;
    }
    await sleep(CONNECT_RETRY_MS);
  }
}

interface Network {
  conditions: NetworkConditions;
  random: Random;
}

class SocketPair {
  readonly closed: Promise<unknown>;
  readonly #sockets: [Socket, Socket];
  #isFrozen = false;

  constructor(near: Socket, far: Socket, network: Network) {
    this.#sockets = [near, far];
    this.closed = Promise.all(this.#sockets.map((socket) => waitForClose(socket)));
    this.#join(near, far, network);
    this.#join(far, near, network);
  }

  freeze(): void {
    this.#isFrozen = true;
    for (const socket of this.#sockets) socket.pause();
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  #join(from: Socket, to: Socket, network: Network): void {
    const queue = new PartQueue(to, network, {
      isFrozen: () => this.#isFrozen,
      reset: () => this.reset(),
      onSpace: () => {
        if (!this.#isFrozen) from.resume();
      },
    });
    from.on("data", (bytes: Buffer) => {
      if (this.#isFrozen) return;
      if (queue.add(bytes) > QUEUE_MAX_BYTES) from.pause();
    });
    from.on("end", () => {
      if (!this.#isFrozen) queue.add("end");
    });
    // A reset of one end is a reset of the other; a frozen connection tells neither.
    from.on("error", () => {
      if (!this.#isFrozen) to.resetAndDestroy();
    });
    from.on("close", () => {
      if (!this.#isFrozen && !from.readableEnded) to.resetAndDestroy();
    });
    from.resume();
  }
}

function waitForClose(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve());
  });
}

interface QueueOwner {
  isFrozen(): boolean;
  reset(): void;
  onSpace(): void;
}

type Part = Buffer | "end";

/** The parts that are on their way to one end. */
class PartQueue {
  readonly #to: Socket;
  readonly #network: Network;
  readonly #owner: QueueOwner;
  readonly #parts: { part: Part; dueAtMs: number }[] = [];
  #bytes = 0;
  #isForwarding = false;

  constructor(to: Socket, network: Network, owner: QueueOwner) {
    this.#to = to;
    this.#network = network;
    this.#owner = owner;
  }

  /** @returns how many bytes wait now. */
  add(part: Part): number {
    const { conditions, random } = this.#network;
    const delayMs = conditions.latencyMs + random.below(conditions.jitterMs + 1);
    this.#parts.push({ part, dueAtMs: performance.now() + delayMs });
    this.#bytes += part.length;
    if (!this.#isForwarding) {
      this.#isForwarding = true;
      void this.#forward().finally(() => (this.#isForwarding = false));
    }
    return this.#bytes;
  }

  async #forward(): Promise<void> {
    for (let next = this.#parts.shift(); next !== undefined; next = this.#parts.shift()) {
      const waitMs = next.dueAtMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      if (next.part === "end") this.#to.end();
      else await this.#sendInSlices(next.part);
      this.#bytes -= next.part.length;
      if (this.#to.destroyed || this.#owner.isFrozen()) return;
      if (this.#bytes <= QUEUE_MAX_BYTES) this.#owner.onSpace();
    }
  }

  async #sendInSlices(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#to.destroyed && !this.#owner.isFrozen();) {
      const { conditions, random } = this.#network;
      const slice = bytes.subarray(at, at + (conditions.sliceBytes || bytes.length));
      if (random.below(1_000) < conditions.resetPerMille) return this.#owner.reset();
      if (random.below(100) < conditions.stallPercent) await sleep(STALL_MS);
      if (conditions.bytesPerSecond > 0)
        await sleep((slice.length / conditions.bytesPerSecond) * 1_000);
      else if (conditions.sliceBytes > 0) await sleep(1);
      if (this.#to.destroyed || this.#owner.isFrozen()) return;
      at += slice.length;
      if (!this.#to.write(slice)) await waitForDrain(this.#to);
    }
  }
}
