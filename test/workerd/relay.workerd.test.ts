/** A relay's object: its link, the relay's reports, and the commands to the relay. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../protocol/wire/close-codes.ts";
import { RELAY_TICKET_USABLE_MAX_MS } from "../../protocol/relay/limits.ts";
import { RELAY_PING, RELAY_PONG, type Revocation } from "../../protocol/relay/link.ts";
import { LiveRelay, networkStatus } from "../harness/workerd/live-relay.ts";
import { rows } from "../harness/workerd/objects.ts";
import { HOUR_MS, MINUTE_MS } from "../../shared/time.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";

afterEach(() => {
  vi.useRealTimers();
  rows.isDatabaseDown = false;
  rows.relayDisconnecting = Promise.resolve();
});

const revocation = (change: Partial<Revocation> = {}): Revocation => ({
  type: "revoke",
  kind: "network",
  id: crypto.randomUUID(),
  reason: "server_changed",
  untilGeneration: 1_700_000_000_000,
  ...change,
});

async function getState(relay: LiveRelay, networkId: string): Promise<string | undefined> {
  return (await relay.stub.findNetworkSummaries([networkId]))[networkId]?.state;
}

async function getTotals(relay: LiveRelay, networkId: string): Promise<[number, number][]> {
  const devices = await relay.stub.listDeviceTotals(networkId);
  return devices.map(({ rxBytes, txBytes }) => [rxBytes, txBytes]);
}

describe("a relay's link", () => {
  test("is connected, also in the database, from its hello until it closes", async () => {
    const relay = new LiveRelay();
    await relay.connect();
    expect(await relay.stub.isConnected()).toBe(false);
    const link = await relay.link({ host: "here.example", firstPort: 5, lastPort: 9 });
    expect(await relay.stub.isConnected()).toBe(true);
    await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(true), WAIT_OPTIONS);
    expect(rows.relays.get(relay.id)).toEqual({
      relayId: relay.id,
      host: "here.example",
      url: "wss://relay.example.com",
      firstPort: 5,
      lastPort: 9,
      epoch: "epoch-1",
    });
    link.socket.close(1000, "bye");
    await vi.waitFor(() => expect(rows.relays.get(relay.id)).toBeUndefined(), WAIT_OPTIONS);
    expect(await relay.stub.isConnected()).toBe(false);
  });

  test("sends the relay the number of its reserved ports", async () => {
    rows.reservedPorts = { udp: 3, tcp: 14 };
    const link = await new LiveRelay().link();
    expect(await link.ports()).toEqual({ type: "ports", reservedUdp: 3, reservedTcp: 14 });
  });

  test("survives hibernation, and heartbeats do not wake the object", async () => {
    const relay = new LiveRelay();
    const link = await relay.link();
    await link.ports();
    await relay.sleep();
    link.socket.send(RELAY_PING);
    expect(await link.nextMessage()).toBe(RELAY_PONG);
    expect(await relay.stub.isConnected()).toBe(true);
    const id = crypto.randomUUID();
    await relay.sleep();
    link.report({ networks: [networkStatus(id)] });
    await vi.waitFor(async () => expect(await getState(relay, id)).toBe("udp"), WAIT_OPTIONS);
  });

  test("is replaced by a newer link of the same relay, and closing the older one does not end it", async () => {
    const relay = new LiveRelay();
    const older = await relay.link();
    const newer = await relay.link({ epoch: "epoch-2" });
    expect((await older.closed).code).toBe(CLOSE.replaced);
    await vi.waitFor(() => expect(rows.relays.get(relay.id)?.epoch).toBe("epoch-2"), WAIT_OPTIONS);
    expect(await relay.stub.isConnected()).toBe(true);
    newer.socket.close(1000);
    await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(false), WAIT_OPTIONS);
  });

  test.each([
    ["of another relay", { relayId: "another" }],
    ["with an empty range of ports", { firstPort: 9, lastPort: 8 }],
    ["that is incomplete", { epoch: undefined as unknown as string }],
  ])("with a hello %s is refused", async (_case, hello) => {
    const relay = new LiveRelay();
    const link = await relay.connect();
    link.hello({ relayId: relay.id, ...hello });
    expect((await link.closed).code).toBe(CLOSE.protocol_error);
    expect(await relay.stub.isConnected()).toBe(false);
  });

  test.each(["{", "null", '{"type":"status"}', '{"type":"shell"}'])(
    "that sends %s is closed",
    async (text) => {
      const relay = new LiveRelay();
      const link = await relay.link();
      link.socket.send(text);
      expect((await link.closed).code).toBe(CLOSE.protocol_error);
    },
  );

  test.each([0, HOUR_MS])(
    "that is silent is closed, also in the database, after the clock was set back by %i ms",
    async (backMs) => {
      const relay = new LiveRelay();
      const link = await relay.link();
      await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(true), WAIT_OPTIONS);
      const nowMs = Date.now() - backMs;
      await runInDurableObject(relay.stub, () => {
        vi.useFakeTimers({ now: nowMs, toFake: ["Date"] });
      });
      expect(await relay.stub.isConnected()).toBe(true);
      vi.setSystemTime(nowMs + MINUTE_MS);
      expect(await relay.stub.isConnected()).toBe(false);
      expect(await runDurableObjectAlarm(relay.stub)).toBe(true);
      expect((await link.closed).code).toBe(CLOSE.heartbeat_timeout);
      expect(rows.relays.has(relay.id)).toBe(false);
    },
  );

  test("is reported to the database when it is available again", async () => {
    rows.isDatabaseDown = true;
    const relay = new LiveRelay();
    await relay.link();
    const nextAlarm = () => runInDurableObject(relay.stub, (_, { storage }) => storage.getAlarm());
    await vi.waitFor(async () => expect(await nextAlarm()).toBeGreaterThan(0), WAIT_OPTIONS);
    expect(rows.relays.has(relay.id)).toBe(false);
    rows.isDatabaseDown = false;
    await vi.waitFor(async () => {
      await runDurableObjectAlarm(relay.stub);
      expect(rows.relays.has(relay.id)).toBe(true);
    }, WAIT_OPTIONS);
  });

  test("that closes while the object hibernates is reported to the database at once", async () => {
    const relay = new LiveRelay();
    const link = await relay.link();
    await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(true), WAIT_OPTIONS);
    await relay.sleep();
    link.socket.close(1000);
    await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(false), { timeout: 10_000 });
  });

  test("that returns during a failing report of its end is connected in the database", async () => {
    const relay = new LiveRelay();
    const first = await relay.link();
    await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(true), WAIT_OPTIONS);
    const call = Promise.withResolvers<void>();
    rows.relayDisconnecting = call.promise;
    first.socket.close(1000);
    await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(false), WAIT_OPTIONS);
    await relay.link();
    call.reject(new Error("the answer of the database was lost"));
    await vi.waitFor(() => expect(rows.relays.has(relay.id)).toBe(true), { timeout: 10_000 });
  });

  test("is closed and refused while the server stops", async () => {
    const relay = new LiveRelay();
    const link = await relay.link();
    await relay.stub.drain();
    expect((await link.closed).code).toBe(CLOSE.going_away);
    await expect(relay.connect()).rejects.toThrow("503");
  });
});

describe("a relay's report", () => {
  test("is current until the relay disconnects, and its lasting part is stored", async () => {
    const relay = new LiveRelay();
    const [known, unknown] = [crypto.randomUUID(), crypto.randomUUID()];
    const link = await relay.link();
    link.report({ networks: [networkStatus(known, { wrongKeyHandshakes: 3 })] });
    await vi.waitFor(async () => expect(await getState(relay, known)).toBe("udp"), WAIT_OPTIONS);
    expect(Object.keys(await relay.stub.findNetworkSummaries([unknown]))).toEqual([]);
    expect(await relay.stub.listDeviceTotals(unknown)).toEqual([]);
    link.socket.close(1000);
    await vi.waitFor(
      async () => expect(await getState(relay, known)).toBe("offline"),
      WAIT_OPTIONS,
    );
    await relay.sleep();
    const { [known]: status } = await relay.stub.findNetworkSummaries([known]);
    expect(status).toMatchObject({
      state: "offline",
      latencyMs: null,
      loss: null,
      isLocalListening: null,
      lastSeenAtMs: 1_700_000_000_000,
      wrongKeyHandshakes: 3,
    });
    expect(await relay.stub.listDeviceTotals(known)).toMatchObject([
      { endpoint: "198.51.100.7:1234" },
    ]);
  });

  test("counts a device's bytes across restarts of the relay, and only once across new links", async () => {
    const relay = new LiveRelay();
    const id = crypto.randomUUID();
    const report = (rxBytes: number, txBytes: number) => ({
      networks: [networkStatus(id, {}, { rxBytes, txBytes })],
    });
    const totals = async (rx: number, tx: number) =>
      vi.waitFor(async () => expect(await getTotals(relay, id)).toEqual([[rx, tx]]), WAIT_OPTIONS);
    const first = await relay.link({ epoch: "a" });
    first.report(report(10, 20));
    first.report(report(15, 30));
    await totals(15, 30);
    first.socket.close(1000);
    const again = await relay.link({ epoch: "a" });
    again.report(report(16, 31));
    await totals(16, 31);
    again.socket.close(1000);
    await vi.waitFor(async () => expect(await relay.stub.isConnected()).toBe(false), WAIT_OPTIONS);
    await relay.sleep();
    const restarted = await relay.link({ epoch: "b" });
    restarted.report(report(4, 9));
    await totals(20, 40);
  });

  test("shows a network as offline that the relay does not report after a new link", async () => {
    const relay = new LiveRelay();
    const [served, dropped] = [crypto.randomUUID(), crypto.randomUUID()];
    const link = await relay.link();
    link.report({ networks: [networkStatus(served), networkStatus(dropped)] });
    await vi.waitFor(async () => expect(await getState(relay, dropped)).toBe("udp"), WAIT_OPTIONS);
    const next = await relay.link({ epoch: "epoch-2" });
    next.report({ networks: [networkStatus(served, { state: "websocket" })] });
    await vi.waitFor(
      async () => expect(await getState(relay, served)).toBe("websocket"),
      WAIT_OPTIONS,
    );
    expect(await getState(relay, dropped)).toBe("offline");
  });

  test("of a deleted network is removed, and a late report does not restore it", async () => {
    const relay = new LiveRelay();
    const id = crypto.randomUUID();
    const link = await relay.link();
    link.report({ networks: [networkStatus(id)] });
    await vi.waitFor(async () => expect(await getState(relay, id)).toBe("udp"), WAIT_OPTIONS);
    await relay.stub.revoke(revocation({ id, reason: "network_deleted" }));
    const other = crypto.randomUUID();
    link.report({ networks: [networkStatus(id, { state: "offline" }), networkStatus(other)] });
    await vi.waitFor(async () => expect(await getState(relay, other)).toBe("udp"), WAIT_OPTIONS);
    expect(await getState(relay, id)).toBeUndefined();
    expect(await relay.stub.listDeviceTotals(id)).toEqual([]);
  });
});

describe("a command to a relay", () => {
  test("is sent at once, and again on each new link", async () => {
    const relay = new LiveRelay();
    const early = revocation();
    await relay.stub.revoke(early);
    const link = await relay.link();
    expect(await link.next()).toEqual(early);
    const now = revocation({ id: undefined, tokenNonce: "ab", reason: "unauthorized" });
    await relay.stub.revoke(now);
    expect(await link.next()).toEqual(now);
    await relay.stub.revoke(now);
    await relay.sleep();
    const next = await relay.link({ epoch: "epoch-2" });
    expect([await next.next(), await next.next()]).toEqual([early, now]);
  });

  test("is sent on new links for as long as a ticket from before it can be used", async () => {
    const relay = new LiveRelay();
    const nowMs = Date.now();
    await runInDurableObject(relay.stub, () => {
      vi.useFakeTimers({ now: nowMs, toFake: ["Date"] });
    });
    const command = revocation();
    await relay.stub.revoke(command);
    vi.setSystemTime(nowMs + RELAY_TICKET_USABLE_MAX_MS - 1);
    const early = await relay.link();
    expect(await early.next()).toEqual(command);
    vi.setSystemTime(nowMs + RELAY_TICKET_USABLE_MAX_MS);
    const late = await relay.link({ epoch: "epoch-2" });
    const newest = revocation();
    await relay.stub.revoke(newest);
    expect(await late.next()).toEqual(newest);
  });

  test("includes only the newest allowlist of a tunnel", async () => {
    const relay = new LiveRelay();
    const tunnelId = crypto.randomUUID();
    await relay.stub.setAllowedCidrs(tunnelId, ["192.0.2.0/24"]);
    await relay.stub.setAllowedCidrs(tunnelId, null);
    const link = await relay.link();
    expect(await link.next()).toMatchObject({ type: "allowed_cidrs", tunnelId, cidrs: null });
    await relay.stub.setAllowedCidrs(tunnelId, ["::/0"]);
    expect(await link.next()).toMatchObject({ type: "allowed_cidrs", tunnelId, cidrs: ["::/0"] });
  });
});

describe("after the clock was set back", () => {
  async function setClockBack(relay: LiveRelay): Promise<void> {
    await runInDurableObject(relay.stub, () => {
      vi.useFakeTimers({ now: Date.now() - HOUR_MS, toFake: ["Date"] });
    });
  }

  test("a revocation includes all tickets from before it, and none from after it", async () => {
    const relay = new LiveRelay();
    const link = await relay.link();
    const before = await relay.stub.takeTicketGeneration();
    await setClockBack(relay);
    const after = await relay.stub.takeTicketGeneration();
    expect(after).toBeGreaterThan(before);
    await relay.stub.revoke(revocation({ untilGeneration: Date.now() }));
    expect(await link.next()).toMatchObject({ untilGeneration: after });
    expect(await relay.stub.takeTicketGeneration()).toBeGreaterThan(after);
  });

  test("a ticket is valid in spite of an earlier revocation, and so is a later allowlist", async () => {
    const relay = new LiveRelay();
    const link = await relay.link();
    const untilGeneration = Date.now() + 1;
    await relay.stub.revoke(revocation({ untilGeneration }));
    expect(await link.next()).toMatchObject({ untilGeneration });
    await setClockBack(relay);
    expect(await relay.stub.takeTicketGeneration()).toBeGreaterThan(untilGeneration);
    const tunnelId = crypto.randomUUID();
    await relay.stub.setAllowedCidrs(tunnelId, []);
    const { asOfMs } = (await link.next()) as { asOfMs: number };
    expect(asOfMs).toBeGreaterThan(untilGeneration);
    expect(await relay.stub.takeTicketGeneration()).toBeGreaterThan(asOfMs);
  });

  test("a revocation of all tickets does not use up the later generations", async () => {
    const relay = new LiveRelay();
    await relay.stub.revoke(revocation({ untilGeneration: Number.MAX_SAFE_INTEGER }));
    expect(await relay.stub.takeTicketGeneration()).toBeLessThan(Date.now() + HOUR_MS);
  });
});
