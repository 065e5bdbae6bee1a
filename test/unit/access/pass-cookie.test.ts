import { describe, expect, test } from "vitest";
import {
  passCookie,
  passesIn,
  setsPass,
  withoutPass,
  VISITOR_PASS_COOKIES_MAX,
} from "../../../access/pass-cookie.ts";

describe("what a visitor's Cookie line leaves for the local server", () => {
  test.each([
    ["a=1", "a=1"],
    ["underpass-visitor=x", null],
    ["__Host-underpass-visitor=x", null],
    ["underpass-visitor=x; a=1", "a=1"],
    ["a=1; underpass-visitor=x", "a=1"],
    ["a=1; underpass-visitor=x; b=2", "a=1; b=2"],
    ["a=1;underpass-visitor=x;b=2", "a=1;b=2"],
    // Two lines of Cookie arrive joined by a comma.
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
  ])("of %j is %j", (cookie, left) => {
    expect(withoutPass(cookie)).toBe(left);
  });
});

describe("passes in a Cookie line", () => {
  test("are those of the name that belongs to the scheme", () => {
    const cookie = "underpass-visitor=a; __Host-underpass-visitor=b; underpass-visitors=c";
    expect(passesIn(cookie, "http")).toEqual(["a"]);
    expect(passesIn(cookie, "https")).toEqual(["b"]);
  });

  test("are found behind those that others have put before them, up to a bound", () => {
    expect(passesIn("underpass-visitor=a, x=1; underpass-visitor=b", "http")).toEqual(["a", "b"]);
    const many = Array.from({ length: 1_000 }, (_, n) => `underpass-visitor=${n}`).join("; ");
    expect(passesIn(many, "http")).toHaveLength(VISITOR_PASS_COOKIES_MAX);
  });
});

test("a pass is for one host, no script and, where there is TLS, for TLS alone", () => {
  const attributes = "Path=/; Max-Age=60; HttpOnly; SameSite=Lax";
  expect(passCookie("http", "x", 60)).toBe(`underpass-visitor=x; ${attributes}`);
  expect(passCookie("https", "x", 60)).toBe(`__Host-underpass-visitor=x; ${attributes}; Secure`);
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
])("whether %j sets the cookie of passes: %s", (line, sets) => {
  expect(setsPass(line)).toBe(sets);
});
