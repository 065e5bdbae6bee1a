/** The checks of an experiment find what they are for. */
import { describe, expect, test } from "vitest";
import { checkConversations } from "../../../chaos/checks/conversations.ts";
import { computeCounterBounds, COUNTERS_LOST_MAX_MS } from "../../../chaos/checks/counters.ts";
import { checkPolicies } from "../../../chaos/checks/policies.ts";
import { compareProcesses } from "../../../chaos/checks/processes.ts";
import { checkRequests } from "../../../chaos/checks/requests.ts";
import { checkWrites } from "../../../chaos/checks/writes.ts";
import {
  History,
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
