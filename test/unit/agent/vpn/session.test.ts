/** How the agent of a network learns which device sends, with a real relay and WireGuard peers. */
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import { NetworkApi } from "../../../../agent/vpn/network-api.ts";
import { VpnSession } from "../../../../agent/vpn/session.ts";
import {
  startServedNetwork,
  type ServedNetwork,
} from "../../../harness/networks/served-network.ts";
import { WAIT_MAX_MS, WAIT_OPTIONS } from "../../../harness/timeouts.ts";

let served: ServedNetwork;
let findPrivateKey: () => Promise<string>;
let session: VpnSession;

beforeAll(async () => {
  served = await startServedNetwork();
});
afterAll(() => served?.[Symbol.asyncDispose]());
beforeEach(() => {
  findPrivateKey = () => Promise.resolve(served.server.privateKey);
  session = new VpnSession({
    api: new NetworkApi({
      server: served.api.url,
      token: Buffer.from("token"),
      authorities: undefined,
      renewal: "Get a new token.",
    }),
    network: "home",
    findPrivateKey: () => findPrivateKey(),
    apply: null,
  });
});
afterEach(() => {
  session.close();
  vi.restoreAllMocks();
});

const waitForReady = () =>
  once(session.agent, "ready", { signal: AbortSignal.timeout(WAIT_MAX_MS) });

test("the agent connects only when it has the server's key, so that it recognizes the first handshake", async () => {
  let tickets = 0;
  const { relayAccess } = served.api;
  vi.spyOn(served.api, "relayAccess").mockImplementation((network) => {
    tickets += 1;
    return relayAccess(network);
  });
  let ticketsBeforeKey: number | undefined;
  findPrivateKey = async () => {
    const isListRead = () => served.api.requests.some((each) => each.includes("/devices "));
    await vi.waitUntil(isListRead, WAIT_OPTIONS);
    // An agent that connects at once has asked for its ticket before this request.
    await fetch(served.api.url);
    ticketsBeforeKey = tickets;
    return served.server.privateKey;
  };
  const ready = waitForReady();
  session.start();
  await ready;
  expect([ticketsBeforeKey, tickets]).toEqual([0, 1]);
  await using device = await served.connectDevice();
  expect(session.agent.devices.findHandshakeAtMs(device.publicKey)).toEqual(expect.any(Number));
});

test("a device whose handshake overtakes the announcement of its flow is reported", async () => {
  const emit = Reflect.get(RelayControlConnection.prototype, "emit") as (
    ...event: unknown[]
  ) => boolean;
  const isIdentified = () => session.agent.devices.listFlows().length > 0;
  vi.spyOn(RelayControlConnection.prototype, "emit").mockImplementation(function (
    this: RelayControlConnection,
    ...event
  ) {
    const deliver = () => Reflect.apply(emit, this, event);
    const [name, message] = event as [string, { type?: string } | undefined];
    if (name !== "message" || message?.type !== "flow") return deliver();
    void vi.waitUntil(isIdentified, WAIT_OPTIONS).then(deliver);
    return true;
  });
  const ready = waitForReady();
  session.start();
  await ready;
  const reported = once(session, "device", { signal: AbortSignal.timeout(WAIT_MAX_MS) });
  await using device = await served.connectDevice();
  expect(await reported).toEqual([
    expect.objectContaining({ name: "laptop" }),
    device.publicKey,
    `127.0.0.1:${device.port}`,
  ]);
});
