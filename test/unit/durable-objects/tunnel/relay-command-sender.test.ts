/** Notices that a tunnel could not send to its relay are sent later, unchanged. */
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ObjectBindings } from "../../../../durable-objects/bindings.ts";
import { RelayCommandSender } from "../../../../durable-objects/tunnel/tcp/relay-command-sender.ts";
import type { Revocation } from "../../../../protocol/relay/link.ts";

const TUNNEL = "00000000-0000-4000-8000-000000000000";

function createControl() {
  const stored = new Map<string, unknown>();
  const sent: [string, Revocation][] = [];
  const state = { isAway: true, awayAfter: Infinity, awayRelay: "" };
  const cidrs: (string[] | null)[] = [];
  const relays = {
    getByName: (relayId: string) => ({
      revoke: (revocation: Revocation) => {
        const isAway = state.isAway || relayId === state.awayRelay;
        if (isAway || sent.length >= state.awayAfter) return Promise.reject(new Error("away"));
        sent.push([relayId, revocation]);
        return Promise.resolve();
      },
      setAllowedCidrs: async (_: string, blocks: string[] | null) => {
        // The first one takes longest.
        for (let turns = cidrs.length === 0 ? 5 : 0; turns > 0; turns--) await Promise.resolve();
        cidrs.push(blocks);
      },
    }),
  } as unknown as ObjectBindings["RELAY"];
  const kv = {
    get: (key: string) => structuredClone(stored.get(key)),
    put: (key: string, value: unknown) => void stored.set(key, structuredClone(value)),
    delete: (key: string) => stored.delete(key),
  } as unknown as SyncKvStorage;
  const open = () => new RelayCommandSender(kv, relays, () => TUNNEL);
  return { open, sent, state, cidrs };
}

afterEach(() => {
  vi.useRealTimers();
});

test("a relay that can't be reached does not keep revocations from the tunnel's next relay", async () => {
  const { open, sent, state } = createControl();
  Object.assign(state, { isAway: false, awayRelay: "old" });
  const control = open();
  control.setPort({ id: "old", port: 40_001 });
  control.setPort({ id: "new", port: 40_001 });
  await expect(control.revoke("unauthorized", "token-a")).rejects.toThrow("away");
  expect(sent).toMatchObject([["new", { tokenNonce: "token-a" }]]);
  state.awayRelay = "";
  await control.flush();
  expect(sent).toMatchObject([
    ["new", {}],
    ["old", { port: 40_001 }],
  ]);
});

describe("a revocation that the relay's object did not receive", () => {
  test("fails so that the caller retries, and is sent later with the time of the first attempt", async () => {
    const { open, sent, state } = createControl();
    const control = open();
    control.setPort({ id: "main", port: 40_001 });
    const before = Date.now();
    await expect(control.revoke("connection_ended", "token-a")).rejects.toThrow("away");
    const after = Date.now();
    state.isAway = false;
    await open().flush();
    expect(sent).toHaveLength(1);
    const [relayId, revocation] = sent[0]!;
    expect(relayId).toBe("main");
    expect(revocation).toMatchObject({ id: TUNNEL, tokenNonce: "token-a" });
    expect(revocation.untilGeneration).toBeGreaterThanOrEqual(before);
    expect(revocation.untilGeneration).toBeLessThanOrEqual(after);
    await open().flush();
    expect(sent).toHaveLength(1);
  });

  test("is stored for the tunnel's previous relay, up to a bound", async () => {
    const { open, sent, state } = createControl();
    const control = open();
    control.setPort({ id: "old", port: 40_001 });
    control.setPort({ id: "old", port: 40_001 });
    control.setPort({ id: "new", port: 40_001 });
    for (let at = 0; at < 100; at++) {
      await control.revoke("unauthorized", `token-${at}`).catch(() => undefined);
    }
    state.isAway = false;
    await control.revoke("tunnel_deleted");
    expect(sent.length).toBeLessThanOrEqual(16);
    expect(sent.at(-1)).toMatchObject(["new", { reason: "tunnel_deleted" }]);
  });
});

test("of two ports that a tunnel leaves in the same millisecond, the delivery of one keeps the other", async () => {
  vi.useFakeTimers();
  const { open, sent, state } = createControl();
  state.isAway = false;
  state.awayAfter = 1;
  const control = open();
  for (const port of [40_001, 40_002, 40_003]) control.setPort({ id: "main", port });
  await expect(control.flush()).rejects.toThrow("away");
  state.awayAfter = Infinity;
  await control.flush();
  expect(sent.map(([, { port }]) => port)).toEqual([40_001, 40_002]);
});

test("of two tokens that are revoked in the same millisecond, the delivery of one keeps the other", async () => {
  vi.useFakeTimers();
  const { open, sent, state } = createControl();
  const control = open();
  control.setPort({ id: "main", port: 40_001 });
  for (const token of ["token-a", "token-b"]) {
    await expect(control.revoke("unauthorized", token)).rejects.toThrow("away");
  }
  Object.assign(state, { isAway: false, awayAfter: 1 });
  await expect(control.flush()).rejects.toThrow("away");
  state.awayAfter = Infinity;
  await control.flush();
  expect(sent.map(([, { tokenNonce }]) => tokenNonce)).toEqual(["token-a", "token-b"]);
});

test("a tunnel without a relay sends nothing", async () => {
  const { open, sent } = createControl();
  const control = open();
  expect(control.isTcp).toBe(false);
  await control.revoke("tunnel_deleted");
  await control.setAllowedCidrs(() => null);
  expect(sent).toEqual([]);
});

test("of two allowlists the newer one is sent last", async () => {
  const { open, cidrs } = createControl();
  const control = open();
  control.setPort({ id: "main", port: 40_001 });
  let current: string[] | null = ["192.0.2.0/24"];
  const first = control.setAllowedCidrs(() => current);
  current = null;
  await Promise.all([first, control.setAllowedCidrs(() => current)]);
  expect(cidrs.at(-1)).toBe(null);
});
