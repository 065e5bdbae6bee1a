/** Flows, their tags and rates. Without sockets. */
import { createHmac, hkdfSync } from "node:crypto";
import { expect, test } from "vitest";
import { FLOW_IDLE_TIMEOUT_MS } from "../../../protocol/relay/limits.ts";
import { DatagramBudget } from "../../../relay/udp/datagram-budget.ts";
import { FlowTags, NO_TAG } from "../../../relay/udp/flow-tags.ts";
import {
  UNCONFIRMED_FLOW_IDLE_MAX_MS,
  type Flow,
  FlowIds,
  type FlowPeer,
  FlowTable,
} from "../../../relay/udp/flows.ts";

function newTable(maxFlows: number, ids = newIds(), orgId = "org") {
  const closed: Flow[] = [];
  const table = new FlowTable<string>({
    ids,
    orgId,
    maxFlows,
    getOwner: () => "owner",
    onClose: (flow) => closed.push(flow),
  });
  return { table, closed, ids };
}

function peer(address: string, port = 1): FlowPeer {
  return { address, port, state: "confirmed" };
}

let last = 0;
function newIds(maxFlows = 1_000): FlowIds<string> {
  return new FlowIds<string>(maxFlows, () => (last += 1));
}

test("a flow is found only by its address and port", () => {
  const { table } = newTable(10);
  const flow = table.open(peer("192.0.2.1", 1_000), 0);
  expect(table.find("192.0.2.1", 1_000)).toBe(flow);
  expect(table.find("192.0.2.1", 1_001)).toBeUndefined();
  expect(table.find("192.0.2.2", 1_000)).toBeUndefined();
  const neighbor = table.open(peer("192.0.2.1", 1_001), 0);
  table.close(flow!);
  expect(table.find("192.0.2.1", 1_000)).toBeUndefined();
  expect(table.find("192.0.2.1", 1_001)).toBe(neighbor);
});

test("a flow that took the place of another with its address stays when the other is closed", () => {
  const { table } = newTable(10);
  const earlier = table.open(peer("192.0.2.1"), 0);
  const later = table.open(peer("192.0.2.1"), 1);
  table.close(earlier!);
  expect(table.find("192.0.2.1", 1)).toBe(later);
});

test("when there are too many flows, unconfirmed addresses are closed first, then the longest idle", () => {
  const { table, closed } = newTable(3);
  const silent = table.open(peer("192.0.2.1"), 0);
  table.open(peer("192.0.2.2"), 10);
  const forged = table.open({ ...peer("192.0.2.3"), state: "unconfirmed" }, 20);
  table.open(peer("192.0.2.4"), 30);
  expect(closed).toEqual([forged]);
  table.open(peer("192.0.2.5"), 40);
  expect(closed).toEqual([forged, silent]);
  expect(table.size).toBe(3);
});

test("an organization has at most half of a relay's flows: beyond it a port closes only its own", () => {
  const ids = newIds(8);
  const first = newTable(10, ids);
  const second = newTable(10, ids);
  for (let at = 0; at < 4; at += 1) first.table.open(peer(`192.0.2.${at}`), at);
  expect(second.table.open(peer("192.0.2.4"), 4)).toBeNull();
  expect(first.closed).toHaveLength(0);
  const opened = first.table.open(peer("192.0.2.5"), 5);
  expect(first.table.find("192.0.2.5", 1)).toBe(opened);
  expect(ids.size).toBe(4);
  const other = newTable(10, ids, "another organization");
  expect(other.table.open(peer("192.0.2.6"), 6)).not.toBeNull();
  other.table.closeAll();
  first.table.closeAll();
  expect(second.table.open(peer("192.0.2.7"), 7)).not.toBeNull();
});

test("idle flows are closed, those of addresses that may be forged earlier", () => {
  const { table, closed } = newTable(10);
  const startMs = 1_800_000_000_000;
  const real = table.open(peer("192.0.2.1"), startMs);
  const forged = table.open({ ...peer("192.0.2.2"), state: "unconfirmed" }, startMs);
  table.closeIdle(startMs + UNCONFIRMED_FLOW_IDLE_MAX_MS);
  expect(closed).toEqual([]);
  table.closeIdle(startMs + UNCONFIRMED_FLOW_IDLE_MAX_MS + 1);
  expect(closed).toEqual([forged]);
  table.closeIdle(startMs + FLOW_IDLE_TIMEOUT_MS);
  expect(closed).toEqual([forged]);
  table.closeIdle(startMs + FLOW_IDLE_TIMEOUT_MS + 1);
  expect(closed).toEqual([forged, real]);
});

test("a tag is valid only for its flow, association, network and relay", () => {
  const secret = "s".repeat(32);
  const tags = new FlowTags(secret, "main");
  const flow = { association: 1, networkId: "n", id: 2, address: "192.0.2.1", port: 3 };
  const tag = tags.create(flow);
  expect(new FlowTags(secret, "main").verify(flow, tag)).toBe(true);
  expect(new FlowTags(secret, "other").verify(flow, tag)).toBe(false);
  expect(new FlowTags("t".repeat(32), "main").verify(flow, tag)).toBe(false);
  for (const change of [
    { association: 2 },
    { networkId: "m" },
    { id: 3 },
    { address: "192.0.2.2" },
    { port: 4 },
  ]) {
    expect(tags.verify({ ...flow, ...change }, tag)).toBe(false);
  }
  expect(tags.verify(flow, NO_TAG)).toBe(false);
});

test("a tag of an earlier version, which an unconfirmed flow got too, is not valid", () => {
  const secret = "s".repeat(32);
  const flow = { association: 1, networkId: "n", id: 2, address: "192.0.2.1", port: 3 };
  const key = hkdfSync("sha256", secret, "main", "underpass-relay.v1 flow tags", 32);
  const mac = createHmac("sha256", Buffer.from(key)).update("1|n|2|192.0.2.1|3").digest();
  const tag = mac.subarray(0, 16).toString("base64");
  expect(new FlowTags(secret, "main").verify(flow, tag)).toBe(false);
});

test("a budget lets its burst pass at once, then its rate, and the excess of a large datagram delays the next ones", () => {
  const budget = new DatagramBudget(1_000, 500, 0);
  expect(budget.take(500, 0)).toBe(true);
  expect(budget.take(1, 0)).toBe(false);
  expect(budget.take(1_000, 100)).toBe(true);
  expect(budget.take(1, 900)).toBe(false);
  expect(budget.take(1, 1_001)).toBe(true);
  // After a long pause no more than the burst may pass.
  expect(budget.take(500, 1e9)).toBe(true);
  expect(budget.take(1, 1e9)).toBe(false);
});

test("a clock that is set back does not stop the datagrams of a budget", () => {
  const budget = new DatagramBudget(1_000, 500, 3_600_000);
  expect(budget.take(500, 3_600_000)).toBe(true);
  expect(budget.take(1, 0)).toBe(false);
  expect(budget.take(1, 10)).toBe(true);
});
