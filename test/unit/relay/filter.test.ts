/** Which datagrams pass a network's public port. Without sockets. */
import { describe, expect, test } from "vitest";
import {
  RECEIVER_INDICES_PER_PORT_MAX,
  RECEIVER_INDEX_MAX_AGE_MS,
  UNPROVEN_DATA_BURST,
  NEW_FLOWS_BURST,
  UNVERIFIED_INITIATIONS_BURST,
  INITIATIONS_BURST,
  FLOW_LENIENCY_MS,
  WireGuardFilter,
} from "../../../relay/udp/filter.ts";
import { ReceiverIndices } from "../../../relay/udp/receiver-indices.ts";
import { newKeyPair } from "../../harness/wireguard/crypto.ts";
import { writeInitiation } from "../../harness/wireguard/handshake.ts";

const SERVER = newKeyPair();
const KNOWN = { state: "confirmed" } as const;
/** When the initial leniency of an association has ended. */
const LATER = FLOW_LENIENCY_MS + 1;

function message(type: number, bytes: number, at4 = 0, at8 = 0): Buffer {
  const made = Buffer.alloc(bytes, 7);
  made.writeUInt32LE(type, 0);
  made.writeUInt32LE(at4, 4);
  made.writeUInt32LE(at8, 8);
  return made;
}
const response = (sender: number, receiver: number) => message(2, 92, sender, receiver);
const cookie = (receiver: number) => message(3, 64, receiver);
const transport = (receiver: number, bytes = 96) => message(4, bytes, receiver);
const initiation = (server = SERVER) => writeInitiation(newKeyPair(), server.publicKey, 1).message;

function newFilter(): WireGuardFilter {
  return new WireGuardFilter(SERVER.publicKey, 0);
}

describe("from an address without a flow", () => {
  test("an initiation for the server's key passes, one for another key is dropped with that reason", () => {
    const filter = newFilter();
    expect(filter.checkFromPeer(initiation(), undefined, "192.0.2.1", LATER)).toBe("pass");
    const other = initiation(newKeyPair());
    expect(filter.checkFromPeer(other, undefined, "192.0.2.1", LATER)).toEqual({
      drop: "wrong_mac1",
    });
  });

  test("a response or a cookie is dropped, even for an index of the server", () => {
    const filter = newFilter();
    filter.recordFromServer(response(5, 1), LATER);
    for (const answer of [response(1, 5), cookie(5)]) {
      expect(filter.checkFromPeer(answer, undefined, "192.0.2.1", LATER)).toEqual({
        drop: "unknown_peer",
      });
    }
  });

  test("data passes for an index that the server used in the last four minutes", () => {
    const filter = newFilter();
    filter.recordFromServer(response(5, 1), LATER);
    const at = (now: number, index: number) =>
      filter.checkFromPeer(transport(index), undefined, "192.0.2.1", now);
    expect(at(LATER, 5)).toBe("confirmed");
    expect(at(LATER, 6)).toEqual({ drop: "unknown_index" });
    expect(at(LATER + RECEIVER_INDEX_MAX_AGE_MS + 1, 5)).toEqual({ drop: "unknown_index" });
  });

  test("data of a session that the relay does not know passes at first, at a bounded rate", () => {
    const filter = newFilter();
    const verdicts = Array.from({ length: NEW_FLOWS_BURST + 5 }, () =>
      filter.checkFromPeer(transport(99), undefined, "192.0.2.1", 1),
    );
    expect(verdicts.filter((verdict) => verdict === "unproven")).toHaveLength(NEW_FLOWS_BURST);
    expect(verdicts.at(-1)).toEqual({ drop: "new_flow_rate" });
  });

  test("data of flows that may have no session is bounded for a port, and an index of the server proves one", () => {
    const filter = newFilter();
    const flow = { state: "unproven" } as const;
    const verdicts = Array.from({ length: UNPROVEN_DATA_BURST + 5 }, () =>
      filter.checkFromPeer(transport(99), flow, "192.0.2.1", 1),
    );
    expect(verdicts.filter((verdict) => verdict === "pass")).toHaveLength(UNPROVEN_DATA_BURST);
    expect(verdicts.at(-1)).toEqual({ drop: "unproven_rate" });
    filter.recordFromServer(response(5, 1), 1);
    expect(filter.checkFromPeer(transport(5), flow, "192.0.2.1", 1)).toBe("confirmed");
  });
});

describe("from an address with a flow", () => {
  test("data passes, whatever its index and length", () => {
    const filter = newFilter();
    for (const bytes of [32, 33, 47, 1_452, 65_499]) {
      expect(filter.checkFromPeer(transport(99, bytes), KNOWN, "192.0.2.1", LATER)).toBe("pass");
    }
  });

  test("responses pass for an index that the server sent, and for no other", () => {
    const filter = newFilter();
    filter.recordFromServer(initiation(), LATER);
    filter.recordFromServer(response(5, 9), LATER);
    const from = (answer: Buffer) => filter.checkFromPeer(answer, KNOWN, "192.0.2.1", LATER);
    expect(from(response(1, 1))).toBe("confirmed");
    expect(from(cookie(5))).toBe("confirmed");
    expect(from(response(1, 9))).toEqual({ drop: "unknown_index" });
    expect(from(cookie(9))).toEqual({ drop: "unknown_index" });
  });

  test.each(["unconfirmed", "unproven", "proven"] as const)(
    "data for an index of the server confirms a peer that is %s",
    (state) => {
      const filter = newFilter();
      filter.recordFromServer(response(5, 1), LATER);
      const from = (index: number) =>
        filter.checkFromPeer(transport(index), { state }, "192.0.2.1", LATER);
      expect(from(6)).toBe("pass");
      expect(from(5)).toBe("confirmed");
    },
  );
});

test("datagrams that are not WireGuard are dropped in either direction", () => {
  const filter = newFilter();
  const wrong = [
    Buffer.alloc(0),
    Buffer.from("hello"),
    transport(1, 31),
    message(1, 147),
    message(1, 149),
    message(2, 93),
    message(3, 63),
    message(5, 96),
    message(0x0100_0004, 96),
  ];
  for (const bytes of wrong) {
    expect(filter.checkFromPeer(bytes, KNOWN, "192.0.2.1", 0)).toEqual({ drop: "not_wireguard" });
    expect(filter.recordFromServer(bytes, 0)).toBe(0);
  }
});

test("one address can't use up the handshakes of others, and an IPv6 subscriber is one address", () => {
  const filter = newFilter();
  const passed = (addresses: string[]) =>
    addresses.filter((address) => filter.checkFromPeer(initiation(), KNOWN, address, 0) === "pass");
  const flood = Array.from({ length: INITIATIONS_BURST + 10 }, () => "192.0.2.1");
  expect(passed(flood)).toHaveLength(INITIATIONS_BURST);
  expect(passed(["192.0.2.2"])).toHaveLength(1);
  const subscriber = flood.map((_, index) => `2001:db8:0:1::${index}`);
  expect(passed(subscriber)).toHaveLength(INITIATIONS_BURST);
});

test("junk with the address of a device does not keep the device out, and a bounded amount of it is read", () => {
  const filter = newFilter();
  const from = (sent: Uint8Array, now: number) =>
    filter.checkFromPeer(sent, undefined, "192.0.2.1", now);
  const junk = message(1, 148);
  for (let now = 0; now < 60_000; now += 50) {
    expect(from(junk, now)).toEqual({ drop: "wrong_mac1" });
    if (now % 5_000 === 0) expect(from(initiation(), now)).toBe("pass");
  }
  const read = UNVERIFIED_INITIATIONS_BURST + INITIATIONS_BURST;
  for (let sent = 0; sent < read; sent += 1) from(junk, 120_000);
  expect(from(junk, 120_000)).toEqual({ drop: "initiation_rate" });
  // Others are served as before.
  expect(filter.checkFromPeer(initiation(), undefined, "192.0.2.2", 120_000)).toBe("pass");
});

test("the budgets refill: each second 20 new flows, 500 unproven datagrams and 10 handshakes of an address", () => {
  const filter = newFilter();
  const unproven = { state: "unproven" } as const;
  const countPassed = (attempts: number, send: () => unknown) =>
    Array.from({ length: attempts }, send).filter((verdict) => typeof verdict === "string").length;
  const sendAt = (now: number) => [
    countPassed(300, () => filter.checkFromPeer(transport(99), undefined, "192.0.2.1", now)),
    countPassed(1_500, () => filter.checkFromPeer(transport(99), unproven, "192.0.2.1", now)),
    countPassed(30, () => filter.checkFromPeer(initiation(), KNOWN, "192.0.2.1", now)),
  ];
  expect(sendAt(1_000)).toEqual([200, 1_000, 20]);
  expect(sendAt(1_000)).toEqual([0, 0, 0]);
  expect(sendAt(2_000)).toEqual([20, 500, 10]);
});

test("strangers who use up the budgets delay neither data nor handshakes of known peers", () => {
  const filter = newFilter();
  for (let n = 0; n <= NEW_FLOWS_BURST; n += 1)
    filter.checkFromPeer(transport(99), undefined, "192.0.2.1", 1);
  expect(filter.checkFromPeer(initiation(), undefined, "192.0.2.2", 1)).toEqual({
    drop: "new_flow_rate",
  });
  expect(filter.checkFromPeer(initiation(), KNOWN, "192.0.2.2", 1)).toBe("pass");
  for (let n = 0; n <= 2 * UNPROVEN_DATA_BURST; n += 1)
    expect(filter.checkFromPeer(transport(99), KNOWN, "192.0.2.2", 1)).toBe("pass");
});

test("a new server key applies from the next handshake on", () => {
  const filter = newFilter();
  const next = newKeyPair();
  filter.setServerPublicKey(next.publicKey);
  expect(filter.checkFromPeer(initiation(next), KNOWN, "192.0.2.1", 0)).toBe("pass");
  expect(filter.checkFromPeer(initiation(), KNOWN, "192.0.2.1", 0)).toEqual({ drop: "wrong_mac1" });
});

test("indices are bounded: the oldest is dropped first", () => {
  const indices = new ReceiverIndices(RECEIVER_INDICES_PER_PORT_MAX, RECEIVER_INDEX_MAX_AGE_MS);
  for (let index = 0; index <= RECEIVER_INDICES_PER_PORT_MAX; index += 1) indices.add(index, 0);
  expect(indices.size).toBe(RECEIVER_INDICES_PER_PORT_MAX);
  expect(indices.has(0, 0)).toBe(false);
  expect(indices.has(1, 0)).toBe(true);
});
