import { describe, expect, test } from "vitest";
import {
  formatPassCookie,
  readPasses,
  isPassCookie,
  removePass,
  VISITOR_PASS_COOKIES_MAX,
} from "../../../../access/authenticators/pass-cookie.ts";

describe("the Cookie header for the local server", () => {
  test.each([
    ["a=1", "a=1"],
    ["underpass-visitor=x", null],
    ["__Host-underpass-visitor=x", null],
    ["underpass-visitor=x; a=1", "a=1"],
    ["a=1; underpass-visitor=x", "a=1"],
    ["a=1; underpass-visitor=x; b=2", "a=1; b=2"],
    ["a=1;underpass-visitor=x;b=2", "a=1;b=2"],
    // The platform joins two Cookie headers with a comma.
    ["a=1, underpass-visitor=x", "a=1"],
    ["underpass-visitor=x, a=1", "a=1"],
    ["underpass-visitor=x; underpass-visitor=y", null],
    ["underpass-visitor =x; \tunderpass-visitor=y", null],
    ['a="1, 2";  b==3=;;c; underpass-visitor=x; d=%3B é', 'a="1, 2";  b==3=;;c; d=%3B é'],
    [
      "not-underpass-visitor=1; underpass-visitors=2",
      "not-underpass-visitor=1; underpass-visitors=2",
    ],
    ["a=underpass-visitor=1", "a=underpass-visitor=1"],
    ["", ""],
  ])("for %j is %j", (cookie, forwarded) => {
    expect(removePass(cookie)).toBe(forwarded);
  });
});

describe("passes in a Cookie header", () => {
  test("are read from the cookie whose name belongs to the scheme", () => {
    const cookie = "underpass-visitor=a; __Host-underpass-visitor=b; underpass-visitors=c";
    expect(readPasses(cookie, "http")).toEqual(["a"]);
    expect(readPasses(cookie, "https")).toEqual(["b"]);
  });

  test("are found after cookies of the same name from other hosts, up to a bound", () => {
    expect(readPasses("underpass-visitor=a, x=1; underpass-visitor=b", "http")).toEqual(["a", "b"]);
    const many = Array.from({ length: 1_000 }, (_, n) => `underpass-visitor=${n}`).join("; ");
    expect(readPasses(many, "http")).toHaveLength(VISITOR_PASS_COOKIES_MAX);
  });
});

test("the pass cookie is for one host, hidden from scripts, and with TLS sent over TLS only", () => {
  const attributes = "Path=/; Max-Age=60; HttpOnly; SameSite=Lax";
  expect(formatPassCookie("http", "x", 60)).toBe(`underpass-visitor=x; ${attributes}`);
  expect(formatPassCookie("https", "x", 60)).toBe(
    `__Host-underpass-visitor=x; ${attributes}; Secure`,
  );
});

test.each([
  ["underpass-visitor=x", true],
  [" underpass-visitor = x; Path=/", true],
  ["__Host-underpass-visitor=x; Secure; Path=/", true],
  ["underpass-visitor", true],
  ["=underpass-visitor=x", true],
  ["underpass-visitors=x", false],
  ["a=underpass-visitor=x", false],
  ["a=1; Path=/underpass-visitor", false],
])("%j sets the pass cookie: %s", (line, sets) => {
  expect(isPassCookie(line)).toBe(sets);
});
