/** The relay while the API can't be reached, and when it stops. */
import { expect, test, vi } from "vitest";
import { RELAY_SUBPROTOCOL } from "../../../protocol/relay/datagrams.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { Relay } from "../../../relay/relay.ts";
import { RelayServer } from "../../../relay/server.ts";
import { readSettings } from "../../../relay/settings.ts";
import { JWKS_REFETCH_MIN_MS } from "../../../relay/tickets.ts";
import { waitForClose } from "../../../sockets/close-event.ts";
import { fastTimers } from "../../harness/preloads/fast-clock.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { reservePorts } from "../../harness/ports.ts";
import { RelayAgent } from "../../harness/relay/relay-agent.ts";
import { startFakeApi, startTestRelay } from "../../harness/relay/test-relay.ts";
import { OPCODE, RawWebSocket } from "../../harness/tunnel/raw-websocket.ts";

test("keys stay valid while the API can't be reached, and an expired ticket is accepted for some time", async () => {
  await using relay = await startTestRelay();
  const sub = crypto.randomUUID();
  await using agent = new RelayAgent(relay.url, await relay.networkTicket({ sub }));
  await agent.waitForWelcome("network");
  relay.api.pause();
  await vi.waitUntil(
    async () => (await relay.metric("underpass_relay_linked")) === 0,
    WAIT_OPTIONS,
  );
  await agent.flush();
  expect(agent.closed).toBeNull();
  const exp = Math.floor(Date.now() / 1_000) - 60;
  const claims = { port: relay.ports[1], exp };
  await using expiredAgent = new RelayAgent(relay.url, await relay.networkTicket(claims));
  await expiredAgent.waitForWelcome("network");
  // The first status after a reconnect contains all networks.
  relay.api.statuses.length = 0;
  relay.api.resume();
  await vi.waitUntil(() => relay.api.network(sub) !== undefined, WAIT_OPTIONS);
  expect(relay.api.hellos).toHaveLength(2);
});

test("a key that the relay does not know yet is fetched", async () => {
  await using relay = await startTestRelay({ env: fastTimers(10) });
  await using first = new RelayAgent(relay.url, await relay.networkTicket());
  await first.waitForWelcome("network");
  await relay.api.rotateKey();
  const claims = { port: relay.ports[1] };
  await using second = new RelayAgent(relay.url, await relay.networkTicket(claims));
  await second.waitForWelcome("network");
});

test("tickets with unknown keys can't make the relay fetch keys repeatedly", async () => {
  const speed = 10;
  await using relay = await startTestRelay({ env: fastTimers(speed) });
  const fetches = relay.api.keyFetches;
  const startedAt = performance.now();
  const attempts = Array.from({ length: 20 }, async (_, index) => {
    const ticket = await relay.networkTicket({}, { kid: `unknown-${index}` });
    await using agent = new RelayAgent(relay.url, ticket);
    return (await agent.waitForClose()).code;
  });
  expect(new Set(await Promise.all(attempts))).toEqual(new Set([CLOSE.unauthorized]));
  const intervals = ((performance.now() - startedAt) * speed) / JWKS_REFETCH_MIN_MS;
  expect(relay.api.keyFetches - fetches).toBeLessThanOrEqual(2 + intervals);
});

test.each(["SIGTERM", "SIGHUP"] as const)(
  "a relay that %s stops closes its agents' connections with a code to retry, and exits with 0",
  async (signal) => {
    await using relay = await startTestRelay();
    await using agent = new RelayAgent(relay.url, await relay.networkTicket());
    await agent.waitForWelcome("network");
    expect(await relay.stop(signal)).toBe(0);
    expect((await agent.waitForClose()).code).toBe(CLOSE.going_away);
  },
);

test("a relay stops as usual when an agent answers its close with an invalid frame", async () => {
  await using relay = await startTestRelay();
  const sub = crypto.randomUUID();
  const headers =
    `Sec-WebSocket-Protocol: ${RELAY_SUBPROTOCOL}\r\n` +
    `Authorization: Bearer ${await relay.tunnelTicket({ sub })}\r\n`;
  const { port } = relay;
  const agent = await RawWebSocket.open({ port, host: "relay", path: "/agent", headers });
  expect((await agent.next())?.opcode).toBe(OPCODE.text);
  const stopped = relay.stop();
  expect((await agent.next())?.opcode).toBe(OPCODE.close);
  agent.send({ opcode: 3 });
  await waitForClose(agent.socket);
  expect(await stopped).toBe(0);
  expect(relay.output).toContain('"relay stopped"');
  await vi.waitUntil(() => relay.api.tunnel(sub)?.openConnections === 0, WAIT_OPTIONS);
});

test("a relay waits for the end of its link to the API also when its own port can't be closed", async () => {
  await using api = await startFakeApi("a".repeat(64));
  const port = await reservePorts(2);
  const settings = readSettings({
    ...{ RELAY_API_URL: api.url, RELAY_SECRET: api.secret, RELAY_BIND: "127.0.0.1" },
    RELAY_PORT_RANGE: `${port}-${port + 1}`,
  });
  const error = vi.fn();
  const relay = new Relay(settings, { info() {}, warn() {}, error });
  await relay.start();
  await vi.waitUntil(() => api.hellos.length === 1, WAIT_OPTIONS);
  const closing = vi.spyOn(RelayServer.prototype, "close").mockRejectedValueOnce(new Error("no"));
  await relay.stop();
  const server = closing.mock.contexts[0] as RelayServer;
  closing.mockRestore();
  await server.close();
  await vi.waitUntil(() => api.links === 0, WAIT_OPTIONS);
  expect(error.mock.calls).toEqual([["could not close a part of the relay", { error: "no" }]]);
});

test("two relays of one API accept only their own tickets", async () => {
  await using api = await startFakeApi("a".repeat(64));
  await using fra = await startTestRelay({ id: "fra", api });
  await using ams = await startTestRelay({ id: "ams", api });
  expect(api.hellos.map(({ relayId }) => relayId)).toEqual(["fra", "ams"]);
  const claims = { port: ams.ports[0] };
  await using wrong = new RelayAgent(ams.url, await fra.networkTicket(claims));
  expect((await wrong.waitForClose()).code).toBe(CLOSE.unauthorized);
  await using right = new RelayAgent(ams.url, await ams.networkTicket(claims));
  await right.waitForWelcome("network");
});

test("an invalid setting is reported in one line with exit code 1", async () => {
  await expect(startTestRelay({ env: { RELAY_HOST: "a b" } })).rejects.toThrow(
    /^the relay ended:\nrelay: RELAY_HOST: must be a host name or an IP address\n$/,
  );
});
