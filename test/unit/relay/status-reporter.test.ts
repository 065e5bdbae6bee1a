/** When the relay sends which status to the API, and of which devices: an agent can name any keys. */
import { expect, test } from "vitest";
import { DEVICES_PER_NETWORK_MAX } from "../../../protocol/relay/limits.ts";
import type { AssociationUsage } from "../../../protocol/relay/link.ts";
import type { Association, NetworkSummary } from "../../../relay/association.ts";
import { DEVICES_PER_RELAY_MAX, NetworkRecords } from "../../../relay/network-records.ts";
import { NETWORK_STATUS_MAX_AGE_MS, StatusReporter } from "../../../relay/status-reporter.ts";

const ID = "5f0f7ae4-9d1c-4b8c-8e58-3a4de6a1a001";

const newRecord = () => new NetworkRecords().getOrCreate(ID);

function network(changes: Partial<NetworkSummary> = {}, record = newRecord()): Association {
  const status: NetworkSummary = {
    networkId: ID,
    orgId: ID,
    state: "udp",
    latencyMs: 1,
    loss: 0,
    lastSeenAtMs: 0,
    isLocalListening: true,
    wrongKeyHandshakes: 0,
    ...changes,
  };
  const getNetworkStatus = (now: number) => ({ ...status, lastSeenAtMs: now });
  return { getNetworkStatus, record } as unknown as Association;
}

function tunnel(bytesIn: number, source = "epoch/1"): Association {
  const usage: AssociationUsage = {
    tunnelId: ID,
    source,
    tokenNonce: "ab",
    connections: 1,
    openConnections: 1,
    bytesIn,
    bytesOut: 0,
  };
  return { getUsage: () => usage } as unknown as Association;
}

test("an unchanged status is repeated only after its maximum age", () => {
  const reporter = new StatusReporter();
  expect(reporter.collect([network(), tunnel(1)], 0)).toHaveLength(1);
  expect(reporter.collect([network(), tunnel(1)], 1)).toHaveLength(0);
  expect(reporter.collect([network({ latencyMs: 2 })], 2)[0]?.networks).toHaveLength(1);
  expect(reporter.collect([tunnel(2)], 3)[0]?.tunnels).toHaveLength(1);
  const [message] = reporter.collect([network({ latencyMs: 2 })], NETWORK_STATUS_MAX_AGE_MS + 3);
  expect(message?.networks).toHaveLength(1);
});

test("after a hello every status is sent, and one message even if there is none", () => {
  const reporter = new StatusReporter();
  reporter.reset();
  expect(reporter.collect([], 0)).toEqual([{ type: "status", networks: [], tunnels: [] }]);
  reporter.collect([network(), tunnel(1)], 0);
  reporter.reset();
  const [message] = reporter.collect([network(), tunnel(1)], 1);
  expect(message).toMatchObject({ networks: [{ networkId: ID }], tunnels: [{ tunnelId: ID }] });
});

test("a network whose agent left is offline, unless another agent serves it or it was deleted", () => {
  const reporter = new StatusReporter();
  reporter.collect([network()], 0);
  reporter.recordEnd(network(), 5);
  expect(reporter.collect([], 6)[0]?.networks).toEqual([
    expect.objectContaining({ state: "offline", latencyMs: null, lastSeenAtMs: 5 }),
  ]);
  expect(reporter.collect([], 7)).toHaveLength(0);
  reporter.recordEnd(network(), 8);
  expect(reporter.collect([network()], 9)[0]?.networks).toEqual([
    expect.objectContaining({ state: "udp" }),
  ]);
  reporter.recordEnd(network(), 10);
  reporter.forgetNetwork(ID);
  reporter.reset();
  expect(reporter.collect([], 11)[0]?.networks).toEqual([]);
});

test("the last totals of a tunnel are sent once, and again after a reconnect", () => {
  const reporter = new StatusReporter();
  reporter.collect([tunnel(1)], 0);
  reporter.recordEnd(tunnel(9), 1);
  const [message] = reporter.collect([], 2);
  expect(message?.tunnels).toEqual([
    expect.objectContaining({ bytesIn: 9, openConnections: 0, source: "epoch/1" }),
  ]);
  expect(reporter.collect([], 3)).toHaveLength(0);
  reporter.reset();
  expect(reporter.collect([], 4)[0]?.tunnels).toHaveLength(1);
});

test("only the devices that have changed are sent, and all of them after a hello, also of a network that is offline", () => {
  const reporter = new StatusReporter();
  const record = newRecord();
  const readDevices = (associations: Association[], now: number): string[] =>
    reporter
      .collect(associations, now)
      .flatMap(({ networks }) => networks.flatMap(({ devices }) => devices))
      .map(({ publicKey, rxBytes }) => `${publicKey} ${rxBytes}`);
  for (const key of ["laptop", "phone"]) record.change(key);
  expect(readDevices([network({}, record)], 0)).toEqual(["laptop 0", "phone 0"]);
  expect(readDevices([network({}, record)], 1)).toEqual([]);
  record.change("phone").rxBytes = 5;
  expect(readDevices([network({}, record)], 2)).toEqual(["phone 5"]);
  reporter.reset();
  expect(readDevices([network({}, record)], 3)).toEqual(["laptop 0", "phone 5"]);
  record.change("laptop");
  reporter.recordEnd(network({}, record), 4);
  expect(readDevices([], 5)).toEqual(["laptop 0"]);
  reporter.reset();
  expect(readDevices([], 6)).toEqual(["phone 5", "laptop 0"]);
});

test("many networks are split into messages within the API's limit", () => {
  const networks = Array.from({ length: 10 }, (_, index) => {
    const record = newRecord();
    for (let at = 0; at < 1_000; at += 1) record.change(`${at}`.padStart(44, "k"));
    return network({ networkId: `network-${index}` }, record);
  });
  const messages = new StatusReporter().collect(networks, 0);
  expect(messages.length).toBeGreaterThan(3);
  expect(messages.flatMap((message) => message.networks)).toHaveLength(10);
});

function readKeys(records: NetworkRecords, networkId: string): string[] {
  return records
    .getOrCreate(networkId)
    .takeChanges(1)
    .map(({ publicKey }) => publicKey);
}

test("of more devices than a network can have, the least recently changed is dropped", () => {
  const records = new NetworkRecords();
  const record = records.getOrCreate("network");
  for (let key = 0; key < DEVICES_PER_NETWORK_MAX; key += 1) record.change(`${key}`);
  record.change("0");
  record.change("new");
  const keys = readKeys(records, "network");
  expect(keys).toHaveLength(DEVICES_PER_NETWORK_MAX);
  expect(keys[0]).toBe("2");
  expect(keys.slice(-2)).toEqual(["0", "new"]);
});

test("of more devices than a relay counts, the least recently changed is dropped, whatever its network", () => {
  const records = new NetworkRecords();
  for (const key of ["early", "busy"]) records.getOrCreate("one").change(key);
  const networks = Array.from(
    { length: DEVICES_PER_RELAY_MAX / DEVICES_PER_NETWORK_MAX },
    (_, index) => records.getOrCreate(`${index}`),
  );
  for (let key = 0; key < DEVICES_PER_NETWORK_MAX; key += 1) {
    records.getOrCreate("one").change("busy");
    for (const network of networks) network.change(`${key}`);
  }
  expect(readKeys(records, "one")).toEqual(["busy"]);
  const others = networks.flatMap((network) => network.takeChanges(1));
  expect(others).toHaveLength(DEVICES_PER_RELAY_MAX - 1);
});

test("the devices of a deleted network take no room", () => {
  const records = new NetworkRecords();
  records.getOrCreate("kept").change("device");
  for (let count = 0; count <= DEVICES_PER_RELAY_MAX / DEVICES_PER_NETWORK_MAX; count += 1) {
    const deleted = records.getOrCreate("deleted");
    for (let key = 0; key < DEVICES_PER_NETWORK_MAX; key += 1) deleted.change(`${key}`);
    records.delete("deleted");
  }
  expect(readKeys(records, "kept")).toEqual(["device"]);
});
