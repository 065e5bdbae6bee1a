import { describe, expect, test } from "vitest";
import { CaptureFilterError, parseCaptureFilter } from "../../../protocol/captures/filter.ts";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";

const CAPTURE: CaptureSummary = {
  id: "01a206ed-ef30-7000-a1a5-c294cf3436fd",
  tunnel_id: "3f245c34-1a29-4046-a036-c294cf3436fd",
  timestamp: "2026-11-23T05:43:06.288Z",
  method: "POST",
  path: "/api/orders/17/items",
  query: "q=Shoes&page=2",
  status: 502,
  latency_ms: 1_190,
  duration_ms: 1_200,
  request_size: 500,
  response_size: 1_500,
  client_ip: "203.0.113.7",
  kind: "http",
  state: "failed",
  error: "agent_offline",
  replay_of: null,
};

describe("a filter", () => {
  test.each([
    "",
    "method:post",
    "method:GET,POST",
    "status:502",
    "status:5xx",
    "status:500-599",
    "status:>=500",
    "status:404,>=500",
    "-status:404",
    "path:/orders",
    "path:/api/*/items",
    "path:*items",
    "query:page=2",
    "query:q=*&page=*",
    "shoes",
    "/items?q=",
    "duration:>1s",
    "duration:1200",
    "duration:<=1.2s",
    "size:2kB",
    "size:>1999",
    "kind:http",
    "state:failed,aborted",
    "ip:203.0.113.7",
    "error:agent_offline",
    "orders",
    "ORDERS",
    "203.0.113",
    '"/api/orders"',
    "method:POST status:>=500 -path:/health orders",
  ])("matches with %j", (text) => {
    expect(parseCaptureFilter(text).matches(CAPTURE)).toBe(true);
  });

  test.each([
    "method:GET",
    "-method:POST",
    "status:4xx",
    "status:>502",
    "path:/Orders",
    "path:/api/*/item",
    "path:Shoes",
    "query:page=3",
    "query:page=*",
    "duration:<1s",
    "size:<2kB",
    "kind:websocket",
    "-orders",
    "method:POST status:404",
    '"orders 17"',
  ])("does not match with %j", (text) => {
    expect(parseCaptureFilter(text).matches(CAPTURE)).toBe(false);
  });

  test.each([
    ["path:/日本", true],
    ["path:/日本/*", true],
    ["query:q=שלום", true],
    ["本/a%2Fb?q=ש", true],
    ["path:/%E6%97%A5", true],
    ["-path:/日", false],
    ["日本/a/b", false],
  ])("finds letters that were sent percent-encoded: %j", (text, isFound) => {
    const path = `/${encodeURIComponent("日本")}/a%2Fb`;
    const query = `q=${encodeURIComponent("שלום")}`;
    expect(parseCaptureFilter(text).matches({ ...CAPTURE, path, query })).toBe(isFound);
  });

  test("with a range does not match a request without an answer yet", () => {
    const open = { ...CAPTURE, status: null, duration_ms: null };
    expect(parseCaptureFilter("status:>=100").matches(open)).toBe(false);
    expect(parseCaptureFilter("duration:<9m").matches(open)).toBe(false);
  });

  test.each([null, undefined])("for a query does not match a request without one: %j", (query) => {
    expect(parseCaptureFilter("query:q").matches({ ...CAPTURE, query })).toBe(false);
    expect(parseCaptureFilter('"?"').matches({ ...CAPTURE, query })).toBe(false);
  });

  test.each([
    ["stauts:500", "there is no field stauts"],
    ["status:abc", "abc is not a status such as 404, 4xx, 400-499 or >=500"],
    ["status:", "the value after status: is missing"],
    ["duration:>fast", ">fast is not a duration"],
    ["kind:ftp", "ftp is not a kind; use http, websocket, sse"],
    ['path:"/a', "a quotation mark is missing"],
    ["x".repeat(2_001), "at most 2000 characters"],
  ])("that is not valid (%j) is refused with a sentence", (text, message) => {
    expect(() => parseCaptureFilter(text)).toThrow(CaptureFilterError);
    expect(() => parseCaptureFilter(text)).toThrow(message);
  });

  test("gives the server only what it can select, and never less than what matches", () => {
    const toQuery = (text: string) => parseCaptureFilter(text).query;
    expect(toQuery("method:post status:5xx path:/api -path:/health text")).toEqual({
      method: "POST",
      status: "5xx",
      path: "/api",
    });
    expect(toQuery("-method:GET status:404,5xx path:/a/* status:>=500")).toEqual({});
  });

  test("with many wildcards is matched without backtracking", () => {
    const { matches } = parseCaptureFilter(`path:${"*a".repeat(500)}`);
    expect(matches({ ...CAPTURE, path: `/${"a".repeat(400)}b` })).toBe(false);
  });
});
