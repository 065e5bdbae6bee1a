/** What a tunnel could not tell its relay is told later, as it was. */
import { describe, expect, test } from "vitest";
import type { ObjectBindings } from "../../../../durable-objects/bindings.ts";
import { RelayControl } from "../../../../durable-objects/tunnel/tcp/relay-control.ts";
import type { Revocation } from "../../../../protocol/relay/link.ts";

const TUNNEL = "00000000-0000-4000-8000-000000000000";

function newControl() {
  const kept = new Map<string, unknown>();
  const told: [string, Revocation][] = [];
  const state = { isAway: true };
  const cidrs: (string[] | null)[] = [];
  const relays = {
    getByName: (relayId: string) => ({
      revoke: (revocation: Revocation) => {
        if (state.isAway) return Promise.reject(new Error("away"));
        told.push([relayId, revocation]);
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
    get: (key: string) => structuredClone(kept.get(key)),
    put: (key: string, value: unknown) => void kept.set(key, structuredClone(value)),
    delete: (key: string) => kept.delete(key),
  } as unknown as SyncKvStorage;
  const open = () => new RelayControl(kv, relays, () => TUNNEL);
  return { open, told, state, cidrs };
}

describe("a revocation that the relay's object did not take", () => {
  test("fails, so that whoever asked asks again, and is told then, with the time of the first", async () => {
    const { open, told, state } = newControl();
    const control = open();
    control.setPort({ id: "main", port: 40_001 });
    const before = Date.now();
    await expect(control.revoke("connection_ended", "token-a")).rejects.toThrow("away");
    const after = Date.now();
    state.isAway = false;
    await open().flush();
    expect(told).toHaveLength(1);
    const [relayId, revocation] = told[0]!;
    expect(relayId).toBe("main");
    expect(revocation).toMatchObject({ id: TUNNEL, tokenNonce: "token-a" });
    expect(revocation.untilGeneration).toBeGreaterThanOrEqual(before);
    expect(revocation.untilGeneration).toBeLessThanOrEqual(after);
    await open().flush();
    expect(told).toHaveLength(1);
  });

  test("is kept for the relay that the tunnel has left, and there are never many", async () => {
    const { open, told, state } = newControl();
    const control = open();
    control.setPort({ id: "old", port: 40_001 });
    control.setPort({ id: "old", port: 40_001 });
    control.setPort({ id: "new", port: 40_001 });
    for (let at = 0; at < 100; at++) {
      await control.revoke("unauthorized", `token-${at}`).catch(() => undefined);
    }
    state.isAway = false;
    await control.revoke("tunnel_deleted");
    expect(told.length).toBeLessThanOrEqual(16);
    expect(told.at(-1)).toMatchObject(["new", { reason: "tunnel_deleted" }]);
  });
});

test("a tunnel without a relay has nothing to tell", async () => {
  const { open, told } = newControl();
  const control = open();
  expect(control.isTcp).toBe(false);
  await control.revoke("tunnel_deleted");
  await control.setAllowedCidrs(() => null);
  expect(told).toEqual([]);
});

test("of two allowlists the newer one is told last", async () => {
  const { open, cidrs } = newControl();
  const control = open();
  control.setPort({ id: "main", port: 40_001 });
  let current: string[] | null = ["192.0.2.0/24"];
  const first = control.setAllowedCidrs(() => current);
  current = null;
  await Promise.all([first, control.setAllowedCidrs(() => current)]);
  expect(cidrs.at(-1)).toBe(null);
});
