/**
 * An unreliable UDP path between clients and one server: it loses, repeats, delays and reorders datagrams,
 * gives clients new addresses as a NAT does, and can be blocked. Each client has a socket of its own upstream.
 */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import { createRandom } from "../random.ts";

interface Address {
  address: string;
  port: number;
}

type Direction = "to-server" | "to-client";

interface UdpFaults {
  /** Parts of 1. */
  loss?: number;
  duplicates?: number;
  /** The part of datagrams that are delayed until `REORDER_DISTANCE` others have passed. */
  reordered?: number;
  delayMs?: number;
  /** The seed of the random choices. */
  seed?: number;
}

export interface UdpProxy extends AsyncDisposable {
  port: number;
  /** Received datagrams, before any loss or change. */
  readonly passed: Record<Direction, number>;
  setFaults(faults: UdpFaults): void;
  /** Drops everything from now on, in one direction or in both. */
  block(direction?: Direction): void;
  unblock(): void;
  /** Drops the NAT's mappings: clients get new ports, and old ports stop working. */
  rebind(): Promise<void>;
  /** Every datagram on its way to the server, for tests that replay it. */
  onDatagram: ((direction: Direction, bytes: Buffer) => void) | undefined;
  /** Sends to the server from the newest client's address at the proxy. */
  inject(bytes: Uint8Array): void;
}

interface Mapping {
  client: Address;
  upstream: Socket;
}

const REORDER_DISTANCE = 3;
/** A delayed datagram is sent after this time if no others arrive. */
const REORDER_MAX_MS = 50;
const RANDOM_STEPS = 10_000;

/** @param at the address to listen on. Default: any port of 127.0.0.1. */
export async function startUdpProxy(serverPort: number, at?: Address): Promise<UdpProxy> {
  const mappings = new Map<string, Mapping>();
  const blocked = new Set<Direction>();
  const passed = { "to-server": 0, "to-client": 0 };
  let faults: UdpFaults = {};
  let random = createRandom(1);
  const delayed: { release: () => void; after: number }[] = [];
  const near = await bind(at ?? { address: "127.0.0.1", port: 0 });
  near.on("message", (bytes, { address, port }) => {
    const mapping = getMapping(address, port);
    pass("to-server", bytes, () => send(mapping.upstream, bytes, serverPort, "127.0.0.1"));
  });

  function getMapping(address: string, port: number): Mapping {
    const key = `${address}:${port}`;
    const known = mappings.get(key);
    if (known) return known;
    const upstream = createSocket("udp4").on("error", () => undefined);
    const mapping = { client: { address, port }, upstream };
    upstream.on("message", (bytes) => {
      pass("to-client", bytes, () => send(near, bytes, port, address));
    });
    mappings.set(key, mapping);
    return mapping;
  }

  function isChosen(part = 0): boolean {
    return random.below(RANDOM_STEPS) < part * RANDOM_STEPS;
  }

  function pass(direction: Direction, bytes: Buffer, deliver: () => void): void {
    passed[direction] += 1;
    proxy.onDatagram?.(direction, bytes);
    if (blocked.has(direction) || isChosen(faults.loss)) return;
    const deliverDelayed = () => {
      if (faults.delayMs === undefined) deliver();
      else setTimeout(deliver, faults.delayMs);
    };
    if (isChosen(faults.reordered)) delay(deliverDelayed);
    else deliverDelayed();
    if (isChosen(faults.duplicates)) deliverDelayed();
    for (const one of delayed.filter((one) => (one.after -= 1) <= 0)) one.release();
  }

  function delay(deliver: () => void): void {
    const one = { after: REORDER_DISTANCE, release };
    const timer = setTimeout(release, REORDER_MAX_MS);
    function release(): void {
      clearTimeout(timer);
      delayed.splice(delayed.indexOf(one), 1);
      deliver();
    }
    delayed.push(one);
  }

  async function rebind(): Promise<void> {
    const old = [...mappings.values()];
    mappings.clear();
    await Promise.all(old.map(({ upstream }) => close(upstream)));
  }

  const proxy: UdpProxy = {
    port: near.address().port,
    passed,
    setFaults(next) {
      faults = next;
      random = createRandom(next.seed ?? 1);
    },
    block(direction) {
      for (const each of direction ? [direction] : (["to-server", "to-client"] as const))
        blocked.add(each);
    },
    unblock: () => blocked.clear(),
    rebind,
    onDatagram: undefined,
    inject(bytes) {
      const mapping = [...mappings.values()].at(-1);
      if (mapping) send(mapping.upstream, bytes, serverPort, "127.0.0.1");
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([rebind(), close(near)]);
    },
  };
  return proxy;
}

async function bind({ address, port }: Address): Promise<Socket> {
  const type = isIPv6(address) ? "udp6" : "udp4";
  const socket = createSocket({ type, recvBufferSize: 4 * 2 ** 20 });
  socket.bind(port, address);
  await once(socket, "listening");
  return socket.on("error", () => undefined);
}

/** A datagram that is still delayed when its socket closes is lost, as on any path. */
function send(socket: Socket, bytes: Uint8Array, port: number, address: string): void {
  try {
    socket.send(bytes, port, address, () => undefined);
  } catch {
    // The socket is closed.
  }
}

async function close(socket: Socket): Promise<void> {
  const closed = once(socket, "close");
  try {
    socket.close();
  } catch {
    return;
  }
  await closed;
}
