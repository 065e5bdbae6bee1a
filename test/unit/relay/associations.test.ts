/** How long an agent may serve with its ticket. The test sets the clock. */
import { createECDH } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  RELAY_CLOCK_TOLERANCE_MS,
  RELAY_TICKET_GRACE_MS,
  RELAY_TICKET_SECONDS,
  RELAY_TICKET_USABLE_MAX_MS,
} from "../../../protocol/relay/limits.ts";
import type { RelayToAgentMessage } from "../../../protocol/relay/control.ts";
import type { RelayTicket } from "../../../protocol/relay/ticket.ts";
import type { Association } from "../../../relay/association.ts";
import {
  TICKET_RENEWAL_MAX_MS,
  type Agent,
  Associations,
  type LinkState,
} from "../../../relay/associations.ts";
import { Metrics } from "../../../relay/metrics.ts";
import { Revocations } from "../../../relay/revocations.ts";
import { readSettings } from "../../../relay/settings.ts";
import type { TunnelAssociation } from "../../../relay/tcp/tunnel-association.ts";
import { reservePorts } from "../../harness/ports.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

class RecordingAgent implements Agent {
  closed: CloseName | null = null;
  readonly sent: RelayToAgentMessage[] = [];
  readonly bufferedBytes = 0;
  send(message: RelayToAgentMessage): void {
    this.sent.push(message);
  }
  sendBinary(): void {}
  close(name: CloseName): void {
    this.closed = name;
  }
}

const log = { info() {}, warn() {}, error() {} };
let link: { isConnected: boolean; connectedAtMs: number | null };
let associations: Associations;
let agent: RecordingAgent;
let port: number;
let expiresAt: number;

function ticket(claims: Partial<RelayTicket> = {}): RelayTicket {
  return {
    kind: "network",
    sub: "5f0f7ae4-9d1c-4b8c-8e58-3a4de6a1a001",
    org: "5f0f7ae4-9d1c-4b8c-8e58-3a4de6a1a002",
    port,
    generation: 1,
    mbps: 10,
    nonce: "ab",
    exp: expiresAt / 1_000,
    server_public_key: createECDH("prime256v1").generateKeys("base64").slice(0, 43) + "=",
    ...claims,
  } as RelayTicket;
}

async function open(claims: Partial<RelayTicket> = {}): Promise<Association> {
  const opened = await associations.open(ticket(claims), agent);
  if ("refused" in opened) throw new Error(opened.message);
  return opened;
}

/** Connects a visitor, and the data connection on which the agent serves it. */
async function connectVisitor(association: TunnelAssociation) {
  const upgrades = createServer((socket) =>
    association.takeDataConnection(socket, Buffer.alloc(0)),
  ).listen(0, "127.0.0.1");
  await once(upgrades, "listening");
  const { port: upgradePort } = upgrades.address() as AddressInfo;
  const dataConnection = connect(upgradePort, "127.0.0.1").on("error", () => undefined);
  const visitor = connect(association.ticket.port, "127.0.0.1").on("error", () => undefined);
  // The head says that the connection has a visitor.
  await once(dataConnection, "data");
  upgrades.close();
  return { visitor, dataConnection };
}

beforeEach(async () => {
  const first = await reservePorts(3);
  port = first + 1;
  expiresAt = 1_000_000_000;
  link = { isConnected: true, connectedAtMs: 0 };
  agent = new RecordingAgent();
  const state: LinkState = link;
  associations = new Associations({
    settings: readSettings({
      RELAY_API_URL: "http://127.0.0.1:1",
      RELAY_SECRET: "s".repeat(32),
      RELAY_PORT_RANGE: `${first}-${port + 1}`,
      RELAY_BIND: "127.0.0.1",
    }),
    epoch: "epoch",
    link: state,
    revocations: new Revocations({ maxEntries: 10, maxAgeMs: 1_000 }),
    metrics: new Metrics(),
    log,
    visitorsMax: 4,
    maxAssociations: 4,
    onEnd: () => undefined,
  });
});
afterEach(() => associations.closeAll());

test("an agent without a new ticket is disconnected when its ticket has expired", async () => {
  await open();
  associations.sweep(expiresAt + RELAY_CLOCK_TOLERANCE_MS);
  expect(agent.closed).toBeNull();
  associations.sweep(expiresAt + RELAY_CLOCK_TOLERANCE_MS + 1);
  expect(agent.closed).toBe("unauthorized");
});

test("an agent with a new ticket stays connected", async () => {
  const association = await open();
  expect(associations.renew(association, ticket({ exp: expiresAt / 1_000 + 300 }))).toBeNull();
  associations.sweep(expiresAt + RELAY_CLOCK_TOLERANCE_MS + 1);
  expect(agent.closed).toBeNull();
});

test("while the API can't be reached it stays connected for a grace period, and for some seconds afterwards", async () => {
  await open();
  link.isConnected = false;
  associations.sweep(expiresAt + RELAY_TICKET_GRACE_MS);
  expect(agent.closed).toBeNull();
  link.isConnected = true;
  link.connectedAtMs = expiresAt + 100_000;
  associations.sweep(link.connectedAtMs + TICKET_RENEWAL_MAX_MS);
  expect(agent.closed).toBeNull();
  associations.sweep(link.connectedAtMs + TICKET_RENEWAL_MAX_MS + 1);
  expect(agent.closed).toBe("unauthorized");
});

test("the grace period is bounded", async () => {
  await open();
  link.isConnected = false;
  associations.sweep(expiresAt + RELAY_CLOCK_TOLERANCE_MS + RELAY_TICKET_GRACE_MS + 1);
  expect(agent.closed).toBe("unauthorized");
});

test("a ticket can't be used for longer than its revocation is stored, also by a relay whose clock is behind", async () => {
  const issuedAtMs = expiresAt - RELAY_TICKET_SECONDS * 1_000;
  await open();
  link.isConnected = false;
  const relayClockMs = issuedAtMs + RELAY_TICKET_USABLE_MAX_MS - RELAY_CLOCK_TOLERANCE_MS;
  associations.sweep(relayClockMs);
  expect(agent.closed).toBeNull();
  associations.sweep(relayClockMs + 1);
  expect(agent.closed).toBe("unauthorized");
});

test("there is no grace period if the API was never reached: revocations are unknown", async () => {
  link.isConnected = false;
  link.connectedAtMs = null;
  expect(associations.graceMs).toBe(0);
  await open();
  associations.sweep(expiresAt + RELAY_CLOCK_TOLERANCE_MS + 1);
  expect(agent.closed).toBe("unauthorized");
});

test("a port that another program uses is refused with a code to retry, and leaves nothing behind", async () => {
  const other = createSocket("udp4");
  await new Promise<void>((resolve) => other.bind(port, "127.0.0.1", resolve));
  expect(await associations.open(ticket(), agent)).toEqual({
    refused: "port_unusable",
    message: `another program uses port ${port} of the relay now; if this lasts, ask the server's operator to free it`,
  });
  expect(associations.list()).toHaveLength(0);
  await new Promise<void>((resolve) => other.close(() => resolve()));
  await open();
});

test("a visitor's connection from before the control connection was lost continues while the agent's tickets are renewed", async () => {
  const claims = { kind: "tunnel", cidrs: null, mbps: 1_000 } as const;
  const lost = (await open(claims)) as TunnelAssociation;
  const { visitor, dataConnection } = await connectVisitor(lost);
  associations.release(lost);
  const laterExp = expiresAt / 1_000 + 300;
  await open({ ...claims, generation: 2, exp: laterExp });
  associations.sweep(expiresAt + RELAY_CLOCK_TOLERANCE_MS + 1);
  visitor.write("still here");
  expect(String((await once(dataConnection, "data"))[0])).toBe("still here");
  associations.sweep(laterExp * 1_000 + RELAY_CLOCK_TOLERANCE_MS + 1);
  await vi.waitUntil(() => visitor.closed && dataConnection.closed, WAIT_OPTIONS);
});

test("the connections of all associations of a tunnel share the rate of its latest ticket", async () => {
  const claims = { kind: "tunnel", cidrs: null } as const;
  const mbps = 40;
  const bytes = 1024 * 1024;
  const lost = await open({ ...claims, mbps: 10_000 });
  const connected = [await connectVisitor(lost as TunnelAssociation)];
  associations.release(lost);
  const latest = await open({ ...claims, generation: 2, mbps });
  connected.push(await connectVisitor(latest as TunnelAssociation));
  const startedAtMs = performance.now();
  await Promise.all(
    connected.map(async ({ visitor, dataConnection }) => {
      visitor.end(Buffer.alloc(bytes));
      let received = 0;
      dataConnection.on("data", (chunk: Buffer) => (received += chunk.length));
      await once(dataConnection, "end");
      expect(received).toBe(bytes);
      visitor.destroy();
    }),
  );
  const seconds = (performance.now() - startedAtMs) / 1_000;
  // Less a burst of a tenth of a second, they need twice as long as one of them alone.
  expect(seconds).toBeGreaterThan((bytes * 8) / (mbps * 1e6));
});

test.each(["network", "tunnel"] as const)(
  "a %s that is revoked while its port is being bound leaves the port free",
  async (kind) => {
    const claims = { kind, cidrs: null } as const;
    const opening = associations.open(ticket(claims), agent);
    // The port is bound in a later turn of the event loop.
    while (associations.list().length === 0) await Promise.resolve();
    associations.revoke({
      ...{ type: "revoke", kind, id: ticket().sub, reason: "unauthorized", untilGeneration: 1 },
    });
    expect(await opening).toMatchObject({ refused: "connection_ended" });
    expect(agent.closed).toBe("unauthorized");
    await open({ ...claims, generation: 2 });
  },
);

test("agents that connect at once get the port one after the other, and the newest serves it", async () => {
  const agents = Array.from({ length: 10 }, () => new RecordingAgent());
  await Promise.all(
    agents.map((one, index) => associations.open(ticket({ generation: index }), one)),
  );
  expect(agents.map(({ closed }) => closed)).toEqual([
    ...Array.from({ length: 9 }, () => "replaced"),
    null,
  ]);
  expect(associations.list()).toHaveLength(1);
});

test("one organization gets half of a relay's capacity; beyond it its agents are asked to retry, and those of others are served", async () => {
  const other = await open({ port: port + 1 });
  await open();
  const third = { sub: crypto.randomUUID(), kind: "tunnel" } as const;
  expect(await associations.open(ticket(third), agent)).toMatchObject({ refused: "going_away" });
  expect(associations.list()).toHaveLength(2);
  const anotherOrganization = { ...third, org: crypto.randomUUID(), cidrs: null };
  associations.release(await open(anotherOrganization));
  await open({ generation: 2 });
  associations.release(other);
  await open({ port: port + 1, generation: 2 });
});
