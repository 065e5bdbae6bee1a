import { describe, expect, test } from "vitest";
import { RETURN_TO_MAX_CHARS } from "../../../../workers/limits.ts";
import {
  buildReturnUrl,
  sanitizeReturnTo,
  sanitizeTarget,
} from "../../../../workers/identity/providers/return-to.ts";

const ORIGIN = "https://underpass.example";

describe("a sign-in leads back to", () => {
  test.each([
    ["/", "/"],
    ["/tunnels", "/tunnels"],
    ["/activate?code=BCDF-GHJK", "/activate?code=BCDF-GHJK"],
    ["/a/b?c=d&e=%20f#g", "/a/b?c=d&e=%20f#g"],
    ["/a/../b", "/b"],
    ["/%7Euser", "/%7Euser"],
    ["/search?email=a@b.example", "/search?email=a@b.example"],
    [`${ORIGIN}/tunnels?x=1`, "/tunnels?x=1"],
    [`${ORIGIN}/`, "/"],
  ])("%s", (returnTo, path) => {
    expect(sanitizeReturnTo(returnTo, ORIGIN)).toBe(path);
  });
});

describe("a sign-in leads to / instead of", () => {
  test.each([
    "",
    "tunnels",
    "//evil.test",
    "///evil.test",
    "/\\evil.test",
    "\\\\evil.test",
    "\\/evil.test",
    "https:evil.test",
    "https:/evil.test",
    "https://evil.test",
    "http://underpass.example/",
    "https://underpass.example:444/",
    "https://underpass.example.evil.test/",
    "https://underpass.example@evil.test/",
    "https://user@underpass.example/",
    "HTTPS://UNDERPASS.EXAMPLE@evil.test/",
    "@evil.test",
    "/@evil.test",
    "/%40evil.test",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "%2f%2fevil.test",
    "/%2fevil.test",
    "/%2Fevil.test",
    "/%5cevil.test",
    "/%09/evil.test",
    "/\t/evil.test",
    "/\n/evil.test",
    "/\r\n/evil.test",
    "/\0/evil.test",
    " //evil.test",
    "/ /evil.test",
    "/.//evil.test",
    "/..//evil.test",
    "/%2e%2e//evil.test",
    "/%2e%2e/%2fevil.test",
    "/a/..//evil.test",
    "/%",
    "/\u2028/evil.test",
    "/\u00a0/evil.test",
    `${ORIGIN}//evil.test`,
    `${ORIGIN}/\\evil.test`,
    `/${"a".repeat(RETURN_TO_MAX_CHARS)}`,
    // Becomes longer when it is encoded as a URL.
    `/${"ä".repeat(RETURN_TO_MAX_CHARS / 2)}`,
  ])("%j", (returnTo) => {
    expect(sanitizeReturnTo(returnTo, ORIGIN)).toBe("/");
  });
});

describe("a visitor's sign-in leads back to", () => {
  test.each([
    ["/", "/"],
    ["/a/b?c=d", "/a/b?c=d"],
    // The tunnel's host is put before it, so it leads to no other site.
    ["//evil.test", "//evil.test"],
    [`${ORIGIN}/a?b`, "/a?b"],
    [`/${"a".repeat(RETURN_TO_MAX_CHARS - 1)}`, `/${"a".repeat(RETURN_TO_MAX_CHARS - 1)}`],
  ])("%s", (requested, target) => {
    expect(sanitizeTarget(ORIGIN, requested)).toBe(target);
  });

  test.each([
    "",
    "a",
    ".evil.test/",
    "@evil.test/",
    "https://evil.test/",
    `${ORIGIN}.evil.test/`,
    "/a b",
    "/\r\nset-cookie: a=b",
    "/ä",
    `/${"a".repeat(RETURN_TO_MAX_CHARS)}`,
  ])("/ instead of %j", (requested) => {
    expect(sanitizeTarget(ORIGIN, requested)).toBe("/");
  });
});

test("a sign-in's outcome replaces outcome parameters in the link", () => {
  const back = "/a?x=1&oauth_token=stolen&mfa_challenge=a&oauth_error=b#c";
  expect(buildReturnUrl(back, ORIGIN, "oauth_token", "mine")).toBe(
    `${ORIGIN}/a?x=1&oauth_token=mine#c`,
  );
  expect(buildReturnUrl(back, ORIGIN, "oauth_error", "x y")).toBe(
    `${ORIGIN}/a?x=1&oauth_error=x+y#c`,
  );
});
