import { describe, expect, test } from "vitest";
import {
  formatPassCookie,
  formatSignInCookie,
  readPasses,
  readSignInNonce,
  isVisitorCookie,
  removeVisitorCookies,
  VISITOR_PASS_COOKIES_MAX,
} from "../../../../access/authenticators/visitor-cookies.ts";

describe("the Cookie header for the local server", () => {
  test.each([
    ["a=1", "a=1"],
    ["underpass-visitor=x", null],
    ["__Host-underpass-visitor=x", null],
    ["__Host-underpass-sign-in=x; a=1; underpass-sign-in=y", "a=1"],
    ["underpass-sign-ins=x", "underpass-sign-ins=x"],
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
    expect(removeVisitorCookies(cookie)).toBe(forwarded);
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

describe("the nonce of a browser that signs in", () => {
  const [one, two] = ["a".repeat(43), "b".repeat(43)];

  test("is read from the only cookie whose name belongs to the scheme", () => {
    const cookie = `x=1; underpass-sign-in=${one}; __Host-underpass-sign-in=${two}`;
    expect(readSignInNonce(cookie, "http")).toBe(one);
    expect(readSignInNonce(cookie, "https")).toBe(two);
    expect(readSignInNonce(`${cookie}; underpass-sign-in=${two}`, "http")).toBeNull();
    expect(readSignInNonce("underpass-sign-in=short", "http")).toBeNull();
    expect(readSignInNonce("", "https")).toBeNull();
  });

  test("is set like the pass", () => {
    expect(formatSignInCookie("https", one, 60)).toBe(
      `__Host-underpass-sign-in=${one}; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure`,
    );
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
  ["underpass-sign-in=x", true],
  ["__Host-underpass-sign-in=x", true],
  ["a=underpass-visitor=x", false],
  ["a=1; Path=/underpass-visitor", false],
])("%j sets a cookie of this service: %s", (line, sets) => {
  expect(isVisitorCookie(line)).toBe(sets);
});
