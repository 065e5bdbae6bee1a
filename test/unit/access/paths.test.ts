import { describe, expect, test } from "vitest";
import { isDeniedPath } from "../../../access/paths.ts";

describe("a denied prefix also covers", () => {
  test.each([
    ["/admin", "itself"],
    ["/admin/users", "a path below it"],
    ["/administration", "what begins with it"],
    ["//admin", "an empty segment"],
    ["///admin", "several empty segments"],
    ["/./admin", "a dot"],
    ["/x/../admin", "two dots"],
    ["/../admin", "more dots than there are segments"],
    ["/x//../admin", "an empty segment that dots remove"],
    ["/%61dmin", "an encoded letter"],
    ["/%61%64%6D%69%6e", "encoded letters in either case"],
    ["/%2e/admin", "an encoded dot"],
    ["/x/%2e%2e/admin", "encoded dots"],
    ["/x/%2E./admin", "half-encoded dots"],
    ["/%2fadmin", "an encoded slash"],
    ["/x/..%2fadmin", "a dot segment that ends in one"],
    ["/x%2f..%2fadmin", "encoded slashes around dots"],
    ["/%2F..%2Fadmin", "dots behind an encoded slash"],
    ["\\admin", "a backslash"],
    ["/\\admin", "a slash and a backslash"],
    ["/x\\..\\admin", "backslashes around dots"],
    ["/%5cadmin", "an encoded backslash"],
    ["/x/%5c../admin", "an encoded backslash before dots"],
    ["/admin;jsessionid=1", "a parameter"],
    ["/admin;/users", "an empty parameter"],
    ["/;x/admin", "a parameter of an empty segment"],
    ["/x/..;/admin", "a parameter of dots"],
    ["/.;x/admin", "a parameter of a dot"],
    ["/x/..%3bx/admin", "an encoded parameter of dots"],
    ["/a%2fb/../admin", "a segment with an encoded slash, taken back"],
  ])("%s: %s", (path) => {
    expect(isDeniedPath(["/admin"], path)).toBe(true);
  });

  test.each([
    ["/p/admin", "/p/%2e%2e/../admin", "dots that count as a name, taken back"],
    ["/y/admin", "/y//../admin", "an empty segment that counts, removed by dots"],
    ["/p/admin", "/p/..;/../admin", "dots with a parameter that count as a name, taken back"],
    ["/p/admin", "/p/a\\b/../admin", "a backslash that counts as a letter"],
    ["/a/b", "/q%2fr/%2e%2e/a%2fb", "a slash that is decoded after the dots"],
    ["/a b", "/a%20b", "a space"],
    ["/a%20b", "/a%20b", "a prefix that is encoded itself"],
    ["/a%20b", "/%61%20b", "another spelling of one"],
    ["/caf\u00e9", "/caf%C3%A9", "a letter of two bytes"],
  ])("%s, spelled %s: %s", (prefix, path) => {
    expect(isDeniedPath([prefix], path)).toBe(true);
  });
});

describe("a path without a denied prefix is admitted", () => {
  test.each([
    "/",
    "/public",
    "/public/admin",
    "/adm",
    "/adm/in",
    "/x/%2e%2e/y/admin",
    "/a/../b/../public",
    "/%",
    "/%zz/%4",
    "/%ff%fe",
    "*",
    "",
  ])("%s", (path) => {
    expect(isDeniedPath(["/admin"], path)).toBe(false);
  });

  test("a doubly encoded path is decoded only once, as by servers", () => {
    expect(isDeniedPath(["/admin"], "/%2561dmin")).toBe(false);
    expect(isDeniedPath(["/admin"], "/x/%252e%252e/admin")).toBe(false);
    expect(isDeniedPath(["/a/b"], "/a%252fb")).toBe(false);
  });

  test("prefixes are case-sensitive: for a server that ignores case, each spelling must be denied", () => {
    expect(isDeniedPath(["/admin"], "/ADMIN")).toBe(false);
    expect(isDeniedPath(["/admin", "/ADMIN"], "/ADMIN")).toBe(true);
  });
});

test("a policy can deny the whole site, or several prefixes", () => {
  expect(isDeniedPath(["/"], "/anything")).toBe(true);
  expect(isDeniedPath(["/a", "/b"], "/./b/c")).toBe(true);
  expect(isDeniedPath([], "/a")).toBe(false);
});

/** The best of a few runs, so that other load on the machine does not count. */
function msFor(path: string): number {
  const times = Array.from({ length: 5 }, () => {
    const startedAt = performance.now();
    isDeniedPath(["/never", "/ever"], path);
    return performance.now() - startedAt;
  });
  return Math.min(...times);
}

test.each(["/x", "/..", "%2f", "/a%2e;b\\c", "//./%61", "/%2e%2e"])(
  "a path of many times %s is read in a time that its length bounds",
  (part) => {
    isDeniedPath(["/never"], part.repeat(150));
    const [once, twice] = [msFor(part.repeat(1_000)), msFor(part.repeat(8_000))];
    expect(twice).toBeLessThan(40 * Math.max(once, 25));
  },
);
