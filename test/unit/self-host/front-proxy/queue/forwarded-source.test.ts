/** The source of a request that has come through the operator's own proxy. */
import { expect, test } from "vitest";
import { findForwardedSource } from "../../../../../self-host/front-proxy/queue/forwarded-source.ts";
import {
  parseRequestHead,
  type RequestHead,
} from "../../../../../self-host/front-proxy/http1/request-head.ts";

test.each([
  ["X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1"],
  ["x-forwarded-for: 203.0.113.9, 192.0.2.1:4711\r\n", "192.0.2.1"],
  ["X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1"],
  ["X-Forwarded-For: 2001:db8:1:2:3::4\r\n", "2001:db8:1:2::/64"],
  ["X-Forwarded-For: \r\n", "unknown"],
  ["", "unknown"],
])("%j: the address that the proxy has added last", (fields, source) => {
  const head = parseRequestHead(`GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`, "") as RequestHead;
  expect(findForwardedSource(head)).toBe(source);
});
