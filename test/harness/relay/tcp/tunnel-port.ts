/** A single port of a TCP tunnel, without the rest of the relay, with plain sockets as visitors and as the agent. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { VisitorHead } from "../../../../protocol/relay/control.ts";
import { TunnelLimits, type VisitorLimits } from "../../../../relay/tcp/tunnel-limits.ts";
import { TunnelPort, type WaitLimits } from "../../../../relay/tcp/tunnel-port.ts";
import type { VisitorSlots } from "../../../../relay/tcp/visitor-slots.ts";
import { reservePort } from "../../ports.ts";

export interface TestTunnelPort extends AsyncDisposable {
  port: TunnelPort;
  limits: TunnelLimits;
  number: number;
  /** How many data connections the port has requested. */
  readonly requestedConnections: number;
  /** Opens a data connection, which gets the next waiting visitor. */
  openDataConnection(): Promise<Socket>;
  /** Connects as a visitor. */
  visit(): Promise<Socket>;
  /** Connects as a visitor. @returns the error code with which the connection ends; null without an error. */
  waitForVisitEnd(): Promise<string | null>;
}

export interface TunnelPortSettings {
  cidrs?: string[];
  mbps?: number;
  waitLimits?: Partial<WaitLimits>;
  visitorLimits?: Partial<VisitorLimits>;
  /** Those of another port of the same tunnel. */
  limits?: TunnelLimits;
  /** What all ports of the relay share. */
  connections?: VisitorSlots;
  /** Opens the data connections that the port requests, and calls this with each. */
  serve?: (connection: Socket) => void;
}

export async function startTunnelPort(settings: TunnelPortSettings = {}): Promise<TestTunnelPort> {
  const number = await reservePort();
  const { mbps = 100_000, waitLimits = {}, visitorLimits } = settings;
  const limits = settings.limits ?? new TunnelLimits(mbps, visitorLimits);
  let requestedConnections = 0;
  const port = new TunnelPort({
    ticket: {
      kind: "tunnel",
      sub: "0190d6a0-0000-7000-8000-000000000001",
      org: "0190d6a0-0000-7000-8000-000000000002",
      port: number,
      generation: 1,
      mbps,
      nonce: "00",
      exp: 0,
      cidrs: settings.cidrs ?? null,
    },
    bind: "127.0.0.1",
    log: { info: () => undefined, warn: () => undefined },
    limits,
    waitLimits,
    ...(settings.connections && { connections: settings.connections }),
    sendOpen(count) {
      requestedConnections += count;
      if (!settings.serve) return;
      for (let i = 0; i < count; i += 1) void openDataConnection().then(settings.serve);
    },
  });
  await port.listen();
  const upgrades = createServer({ allowHalfOpen: true }, (socket) =>
    port.takeDataConnection(socket, Buffer.alloc(0)),
  );
  upgrades.listen(0, "127.0.0.1");
  await once(upgrades, "listening");
  const sockets = new Set<Socket>();

  async function open(target: number): Promise<Socket> {
    const socket = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true });
    sockets.add(socket);
    socket.on("error", () => undefined);
    await once(socket, "connect");
    return socket;
  }
  function openDataConnection(): Promise<Socket> {
    return open((upgrades.address() as AddressInfo).port);
  }

  return {
    port,
    limits,
    number,
    get requestedConnections() {
      return requestedConnections;
    },
    openDataConnection,
    visit: () => open(number),
    waitForVisitEnd() {
      const socket = connect({ port: number, host: "127.0.0.1" });
      sockets.add(socket);
      return waitForEnd(socket);
    },
    async [Symbol.asyncDispose]() {
      port.close();
      for (const socket of sockets) socket.destroy();
      upgrades.close();
      await once(upgrades, "close");
    },
  };
}

/** Reads the head that comes before a visitor's first byte, and leaves the rest to be read. */
export async function readHead(connection: Socket): Promise<VisitorHead> {
  const length = await readExactly(connection, 2);
  const json = await readExactly(connection, length.readUInt16BE());
  return VisitorHead.parse(JSON.parse(json.toString()));
}

export async function readExactly(socket: Socket, count: number): Promise<Buffer> {
  for (;;) {
    const bytes = socket.read(count) as Buffer | null;
    if (bytes && bytes.length === count) return bytes;
    if (socket.readableEnded || socket.destroyed) throw new Error("ended early");
    await Promise.race([once(socket, "readable"), once(socket, "close"), once(socket, "end")]);
  }
}

/** Reads until the other side ends. */
export async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket.iterator({ destroyOnReturn: false }))
    chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** @returns the error code with which the connection ended; null when it ended without an error. */
export async function waitForEnd(socket: Socket): Promise<string | null> {
  let code: string | null = null;
  socket.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? "unknown"));
  socket.resume();
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  return code;
}
