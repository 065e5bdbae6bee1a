/** Which allowlist of a TCP tunnel applies: that of the agent's ticket, or one that the API pushed. */
import { expect, test } from "vitest";
import type { TunnelTicket } from "../../../protocol/relay/ticket.ts";
import { AllowlistUpdates } from "../../../relay/tcp/allowlist-updates.ts";

const TUNNEL = "5f0f7ae4-9d1c-4b8c-8e58-3a4de6a1a001";

const ticket = (generation: number, cidrs: string[] | null): TunnelTicket => ({
  kind: "tunnel",
  sub: TUNNEL,
  org: "5f0f7ae4-9d1c-4b8c-8e58-3a4de6a1a002",
  port: 40_001,
  generation,
  mbps: 1,
  nonce: "ab",
  exp: 1,
  cidrs,
});

const newUpdates = (maxEntries = 10) => new AllowlistUpdates({ maxEntries, maxAgeMs: 1_000 });

test("a ticket's list applies until one is pushed", () => {
  expect(newUpdates().getEffectiveCidrs(ticket(5, ["192.0.2.0/24"]))).toEqual(["192.0.2.0/24"]);
});

test("a ticket that was signed before a change does not undo it, a later one has its own list", () => {
  const updates = newUpdates();
  expect(updates.add(TUNNEL, ["198.51.100.0/24"], 100)).toBe(true);
  expect(updates.getEffectiveCidrs(ticket(99, null))).toEqual(["198.51.100.0/24"]);
  expect(updates.getEffectiveCidrs(ticket(101, ["::/0"]))).toEqual(["::/0"]);
});

test("of two pushed lists the later one applies, whichever arrives last", () => {
  const updates = newUpdates();
  updates.add(TUNNEL, ["198.51.100.0/24"], 100);
  expect(updates.add(TUNNEL, null, 90)).toBe(false);
  expect(updates.getEffectiveCidrs(ticket(1, null))).toEqual(["198.51.100.0/24"]);
});

test("a list that is older than every valid ticket is dropped, and the number of lists is bounded", () => {
  const updates = newUpdates(2);
  updates.add(TUNNEL, ["198.51.100.0/24"], 0);
  updates.add("another", null, 2_000);
  expect(updates.getEffectiveCidrs(ticket(0, null))).toBeNull();
  updates.add(TUNNEL, ["198.51.100.0/24"], 2_001);
  updates.add("a third", null, 2_002);
  expect(updates.getEffectiveCidrs(ticket(0, null))).toEqual(["198.51.100.0/24"]);
  updates.add("a fourth", null, 2_003);
  expect(updates.getEffectiveCidrs(ticket(0, null))).toBeNull();
});
