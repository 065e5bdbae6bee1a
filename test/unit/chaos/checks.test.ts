/** The checks of an experiment find what they are for. */
import { describe, expect, test } from "vitest";
import { checkConversations } from "../../../chaos/checks/conversations.ts";
import { computeCounterBounds, COUNTERS_LOST_MAX_MS } from "../../../chaos/checks/counters.ts";
import {
  ATTEMPTS_MIN,
  checkLoadAfterFaults,
  checkLoadUnderFaults,
  listLoadKinds,
} from "../../../chaos/checks/load-kinds.ts";
import { checkPolicies } from "../../../chaos/checks/policies.ts";
import { compareProcesses } from "../../../chaos/checks/processes.ts";
import { checkBrokenResponses, checkRequests } from "../../../chaos/checks/requests.ts";
import { checkWrites } from "../../../chaos/checks/writes.ts";
import {
  CONVERSATION_KINDS,
  History,
  REQUEST_KINDS,
  WRITE_KINDS,
  type ArrivalEntry,
  type ConversationEntry,
  type HistoryEntry,
  type RequestEntry,
  type WriteEntry,
} from "../../../chaos/history.ts";

const request = (changes: Partial<RequestEntry> = {}): RequestEntry => ({
  type: "request",
  id: "1",
  tunnel: "web",
  kind: "order",
  outcome: "complete",
  status: 200,
  startedAtMs: 100,
  endedAtMs: 110,
  ...changes,
});
const arrival = (changes: Partial<ArrivalEntry> = {}): ArrivalEntry => ({
  type: "arrival",
  id: "1",
  atMs: 105,
  kind: "order",
  ...changes,
});
const write = (changes: Partial<WriteEntry>): WriteEntry => ({
  type: "write",
  kind: "create-tunnel",
  name: "a",
  result: "acknowledged",
  status: 201,
  startedAtMs: 0,
  endedAtMs: 10,
  ...changes,
});
const conversation = (changes: Partial<ConversationEntry>): ConversationEntry => ({
  type: "conversation",
  over: "websocket",
  tunnel: "web",
  sent: 3,
  received: 3,
  end: "closed with 1000",
  startedAtMs: 0,
  endedAtMs: 10,
  ...changes,
});

function record(...entries: HistoryEntry[]): History {
  const history = new History();
  for (const entry of entries) history.add(entry);
  return history;
}

const failed = (checks: { name: string; passed: boolean }[]) =>
  checks.filter(({ passed }) => !passed).map(({ name }) => name);

describe("requests", () => {
  test("that arrived once and were answered pass", () => {
    expect(failed(checkRequests(record(arrival(), request())))).toEqual([]);
  });

  test.each([
    ["a POST that arrived twice", [arrival(), arrival(), request()], "twice"],
    ["an answer to a POST that never arrived", [request()], "has reached it"],
    ["a body of another request", [arrival(), request({ outcome: "corrupt" })], "whole one"],
    [
      "a broken response that looks complete",
      [arrival({ kind: "page" }), request({ kind: "broken-download" })],
      "whole one",
    ],
    [
      "an upload that was cut and answered",
      [arrival({ kind: "upload", body: "cut" }), request({ kind: "upload" })],
      "whole one",
    ],
    [
      "an internal error",
      [request({ kind: "page", outcome: "refused", status: 500, detail: "internal" })],
      "part that is down",
    ],
  ] satisfies [string, HistoryEntry[], string][])("fail: %s", (_, entries, name) => {
    expect(failed(checkRequests(record(...entries)))).toEqual([expect.stringContaining(name)]);
  });

  test.each([
    ["that is cut", { outcome: "cut" }, true],
    ["that stays open", { outcome: "timed out" }, false],
    ["that looks complete", { outcome: "corrupt" }, false],
    ["that stays open because of a fault", { outcome: "timed out", startedAtMs: 99 }, true],
    ["that has not begun", { outcome: "timed out", status: 0 }, true],
    ["that has not begun, with an error of the service", { outcome: "refused", status: 502 }, true],
  ] satisfies [string, Partial<RequestEntry>, boolean][])(
    "a broken response %s",
    (_, changes, passed) => {
      const history = record(request({ kind: "broken-download", ...changes }));
      expect(checkBrokenResponses(history, 100).passed).toBe(passed);
    },
  );

  test("a GET may arrive twice", () => {
    const again = arrival({ kind: "page" });
    expect(failed(checkRequests(record(again, again, request({ kind: "page" }))))).toEqual([]);
  });
});

describe("conversations", () => {
  test.each([
    ["a message of another one", conversation({ mismatch: "x" }), ["in order"]],
    ["lost messages and a normal close", conversation({ received: 2 }), ["as if it were"]],
    ["lost messages and a lost connection", conversation({ received: 2, end: "1006" }), []],
    [
      "an agent that ended",
      { type: "exit", atMs: 1, program: "a", code: 1, detail: "" },
      ["gives up"],
    ],
  ] satisfies [string, HistoryEntry, string[]][])("%s", (_, entry, names) => {
    expect(failed(checkConversations(record(entry)))).toEqual(
      names.map((name) => expect.stringContaining(name) as string),
    );
  });
});

describe("a policy", () => {
  const policy = (name: string, endedAtMs: number, result: WriteEntry["result"] = "acknowledged") =>
    write({ kind: "set-policy", name, endedAtMs, result });

  test.each([
    ["an older one after the acknowledgement", 1, false],
    ["the acknowledged one", 2, true],
    ["a newer one without an answer", 3, true],
  ])("%s", (_, number, passed) => {
    const history = record(policy("1", 10), policy("2", 50), policy("3", 60, "unknown"));
    history.add(request({ policy: number }));
    expect(checkPolicies(history, "web").passed).toBe(passed);
  });
});

describe("changes", () => {
  const none = { tunnels: [], tokens: [], createdTunnels: [] };
  const created = { ...none, tunnels: ["a"], createdTunnels: ["a"] };

  test.each([
    ["a lost tunnel", [write({})], { ...none, createdTunnels: ["a"] }, false],
    ["a lost audit event", [write({})], { ...created, createdTunnels: [] }, false],
    ["a tunnel that was created twice", [write({})], { ...created, tunnels: ["a", "a"] }, false],
    ["a refused one that is there", [write({ result: "refused" })], created, false],
    ["an unknown one that is there", [write({ result: "unknown" })], created, true],
    ["an unknown one that is not there", [write({ result: "unknown" })], none, true],
    [
      "a token that is there twice",
      [write({ kind: "mint-token" })],
      { ...none, tokens: ["a", "a"] },
      false,
    ],
    ["a deleted one that is there", [write({}), write({ kind: "delete-tunnel" })], created, false],
  ])("%s", (_, entries, rows, passed) => {
    expect(checkWrites(record(...entries), rows).passed).toBe(passed);
  });
});

describe("each kind of load", () => {
  const one = { visitors: 1, transfers: 1, webSockets: 1, tcpStreams: 1, writers: 1 };
  const kinds = listLoadKinds(one, true);
  const succeed = (startedAtMs: number): HistoryEntry[] => [
    ...REQUEST_KINDS.map((kind) =>
      request({ kind, startedAtMs, outcome: kind === "broken-download" ? "cut" : "complete" }),
    ),
    conversation({ startedAtMs }),
    conversation({ startedAtMs, over: "tcp", end: "closed" }),
    ...WRITE_KINDS.map((kind) => write({ kind, startedAtMs })),
  ];
  const unanswered = [
    ...REQUEST_KINDS.map((kind) => request({ kind, outcome: "timed out", status: 0 })),
    ...CONVERSATION_KINDS.map((over) => conversation({ over, received: 0, end: "silent" })),
    ...WRITE_KINDS.map((kind) => write({ kind, result: "unknown", status: 0 })),
  ];
  const repeat = (entries: HistoryEntry[], times: number) =>
    record(...Array.from({ length: times }, () => entries).flat());

  test("is in the list when it runs", () => {
    expect(kinds).toEqual([...REQUEST_KINDS, ...CONVERSATION_KINDS, ...WRITE_KINDS]);
    expect(listLoadKinds({ ...one, transfers: 0, tcpStreams: 0, writers: 0 }, true)).toEqual([
      "page",
      "order",
      "websocket",
    ]);
    expect(listLoadKinds(one, false)).not.toContain("tcp");
  });

  test.each(kinds)("must succeed once while there are faults: %s", (kind) => {
    const isOther = (entry: HistoryEntry) => !JSON.stringify(entry).includes(`"${kind}"`);
    const history = repeat([...unanswered, ...succeed(0).filter(isOther)], ATTEMPTS_MIN);
    const { passed, detail } = checkLoadUnderFaults(history, kinds, 1_000);
    expect({ passed, detail }).toEqual({
      passed: false,
      detail: `1 of ${kinds.length} kinds of load: ${kind}: none of ${ATTEMPTS_MIN}`,
    });
    history.add(succeed(0).find((entry) => !isOther(entry))!);
    expect(checkLoadUnderFaults(history, kinds, 1_000).passed).toBe(true);
  });

  test("may fail a few times while there are faults", () => {
    const history = repeat(unanswered, ATTEMPTS_MIN - 1);
    expect(checkLoadUnderFaults(history, kinds, 1_000).passed).toBe(true);
  });

  test("must succeed again after the last fault", () => {
    const [first, ...others] = succeed(2_000);
    const history = record(...succeed(1_000), ...others);
    expect(checkLoadAfterFaults(history, kinds, 2_000)).toMatchObject({
      passed: false,
      detail: `1 of ${kinds.length} kinds of load: page: none of 0`,
    });
    history.add(first!);
    expect(checkLoadAfterFaults(history, kinds, 2_000).passed).toBe(true);
  });

  test.each([
    [
      "a broken response that stays open",
      request({ kind: "broken-download", outcome: "timed out" }),
    ],
    ["a WebSocket that loses messages", conversation({ received: 2 })],
    ["a WebSocket without a message", conversation({ sent: 0, received: 0 })],
    ["a lost WebSocket", conversation({ end: "closed with 1006" })],
    ["a refused change", write({ result: "refused" })],
  ] satisfies [string, HistoryEntry][])("has not succeeded with %s", (_, entry) => {
    const name = "kind" in entry ? entry.kind : entry.over;
    expect(checkLoadAfterFaults(record(entry), [name], 0).passed).toBe(false);
  });
});

describe("the bounds of a counter", () => {
  test("are exact without faults", () => {
    const history = record(request(), arrival(), request({ id: "2" }), arrival({ id: "2" }));
    expect(computeCounterBounds(history, "web")).toEqual({ least: 2, most: 2 });
  });

  test("allow for what a crash may lose, and for requests without an answer", () => {
    const late = { id: "2", startedAtMs: 20_000, endedAtMs: 20_010 };
    const history = record(request(), request(late), request({ id: "3", outcome: "cut" }), {
      type: "fault",
      atMs: 20_010 + COUNTERS_LOST_MAX_MS,
      fault: { kind: "kill", process: "workerd" },
    });
    expect(computeCounterBounds(history, "web")).toEqual({ least: 1, most: 4 });
  });
});

test("more processes or descriptors than at the start are a leak", () => {
  const before = { names: ["relay", "server"], descriptors: new Map([["server", 30]]) };
  const names = ["relay", "relay", "server"];
  const leaking = { names, descriptors: new Map([["server", 300]]) };
  expect(failed(compareProcesses(before, before))).toEqual([]);
  expect(failed(compareProcesses(before, leaking))).toHaveLength(2);
});
