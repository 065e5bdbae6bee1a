/** The notations of a local TCP server, and of the address where `underpass connect` listens. */
import { expect, test } from "vitest";
import { parseListenAddress } from "../../../../agent/connect/listen-address.ts";
import { parseTcpTarget } from "../../../../agent/tcp/tcp-target.ts";
import { formatHostAndPort } from "../../../../shared/hosts.ts";

test.each([
  ["5432", { host: "localhost", port: 5432, text: "localhost:5432" }],
  ["db.internal:5432", { host: "db.internal", port: 5432, text: "db.internal:5432" }],
  ["127.0.0.1:22", { host: "127.0.0.1", port: 22, text: "127.0.0.1:22" }],
  ["[::1]:5432", { host: "::1", port: 5432, text: "[::1]:5432" }],
  ["tcp://localhost:5432", { host: "localhost", port: 5432, text: "localhost:5432" }],
])("%s is a local TCP server", (text, target) => {
  expect(parseTcpTarget(text)).toEqual(target);
});

test.each(["", "0", "65536", "db", "db:", ":5432", "::1:5432", "http://localhost:80", "a b:1"])(
  "%s is not a local TCP server",
  (text) => {
    expect(parseTcpTarget(text)).toBeNull();
  },
);

test.each([
  ["5433", { host: "127.0.0.1", port: 5433 }],
  ["0", { host: "127.0.0.1", port: 0 }],
  ["127.0.0.1:5433", { host: "127.0.0.1", port: 5433 }],
  ["[::1]:5433", { host: "::1", port: 5433 }],
  ["0.0.0.0:5433", { host: "0.0.0.0", port: 5433 }],
])("--listen accepts %s", (text, address) => {
  expect(parseListenAddress(text)).toEqual(address);
});

test.each(["", "65536", "localhost", "::1", "127.0.0.1:", "127.0.0.1:x"])(
  "--listen rejects %j",
  (text) => {
    expect(parseListenAddress(text)).toBeNull();
  },
);

test("an IPv6 address is printed in brackets", () => {
  expect(formatHostAndPort("::1", 5433)).toBe("[::1]:5433");
  expect(formatHostAndPort("127.0.0.1", 5433)).toBe("127.0.0.1:5433");
});
