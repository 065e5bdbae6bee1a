import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  AMBIGUOUS_PATH_MAX_CHARS,
  checkPath,
  shortenPath,
} from "../../../../access/paths/denied-paths.ts";
import { isDeniedByListing } from "./listed-interpretations.ts";

const isDeniedPath = (prefixes: string[], path: string) => checkPath(prefixes, path) === "denied";

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
    ["/%u0061%U0064min", "letters in the notation of HTTP.sys"],
    ["/x/%u002e./%u002fadmin", "dots and a slash in the notation of HTTP.sys"],
    ["/x/..%u003bx%u005cadmin", "a parameter and a backslash in the notation of HTTP.sys"],
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
    ["//host/admin", "a host"],
    ["//user@host:80/./admin", "a host with a user and a port, before a dot"],
    ["///host//admin", "a host after three slashes, before an empty segment"],
    ["/\\host\\%61dmin", "a host between backslashes, before an encoded letter"],
    ["//a\\b/admin", "a host that ends at a slash only"],
    ["/%2fhost%5cadmin", "a host between encoded slashes"],
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
    "//host",
    "//host/public/admin",
    "/x//host/admin",
    "/a/../b/../public",
    "/%",
    "/%zz/%4",
    "/%u006/%u00zz",
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
});

describe("the case of letters is ignored", () => {
  test.each([
    ["/admin", "/ADMIN"],
    ["/Admin", "/aDMIN/x"],
    ["/admin", "//%41dmi%4E"],
    ["/a%2Fb", "/A%2fB"],
    ["/caf\u00e9", "/CAF%C3%89"],
    ["/stra\u00dfe", "/STRASSE"],
    ["/\u03c3", "/\u03a3"],
  ])("%s denies %s", (prefix, path) => {
    expect(isDeniedPath([prefix], path)).toBe(true);
  });
});

test("a policy can deny the whole site, or several prefixes", () => {
  expect(isDeniedPath(["/"], "/anything")).toBe(true);
  expect(isDeniedPath(["/a", "/b"], "/./b/c")).toBe(true);
  expect(isDeniedPath(["/a", "/a/b", "/ab"], "/x/../ab")).toBe(true);
  expect(isDeniedPath([], "/a/./b")).toBe(false);
});

/** Everything that servers disagree about, and few letters, so that prefixes match often. */
const PARTS = [
  ..."/.\\;%ab",
  ..."/.",
  ...["//", "..", "/../", "/./", "%2f", "%2F", "%2e", "%5c", "%3b", "%61", "%25", "%2", "%"],
  ...["%c3%a9", "%c3", "%a9%c3", "\u00e9", "%20", " ", "..;", "%2e%2e"],
];
const text = (maxLength: number) =>
  fc.array(fc.constantFrom(...PARTS), { maxLength }).map((parts) => parts.join(""));
const paths = text(14).map((rest) => `/${rest}`);
const prefixes = fc.array(
  text(3).map((rest) => `/${rest}`),
  { minLength: 1, maxLength: 4 },
);

describe("a path that is read once", () => {
  test("is denied exactly when one of its interpretations, written out, has a denied prefix", () => {
    fc.assert(
      fc.property(prefixes, paths, (denied, path) => {
        const lower = denied.map((prefix) => prefix.toLowerCase());
        const isListed = isDeniedByListing(lower, path.toLowerCase());
        expect(isDeniedPath(denied, path)).toBe(isListed);
      }),
      { numRuns: 3_000 },
    );
  });

  test("is denied in upper case when it is in lower case, and the other way round", () => {
    fc.assert(
      fc.property(prefixes, paths, (denied, path) => {
        const upper = denied.map((prefix) => prefix.toUpperCase());
        expect(isDeniedPath(upper, path)).toBe(isDeniedPath(denied, path));
        expect(isDeniedPath(denied, path.toUpperCase())).toBe(isDeniedPath(denied, path));
      }),
    );
  });

  const NEVER = ["/never"];
  /** @returns the verdict, and how many characters were read for it. */
  function readCounted(path: string): [string, number] {
    checkPath(NEVER, "/");
    const read = vi.spyOn(String.prototype, "charCodeAt");
    const verdict = checkPath(NEVER, path);
    const reads = read.mock.calls.length;
    read.mockRestore();
    return [verdict, reads];
  }

  const HOSTILE = ["/x", "/..", "%2f", "/a%2e;b\\c", "//./%61", "/%2e%2e", "%e2%82%ac", ";%", "/"];

  test.each(HOSTILE)("many times %s is read once, up to 4 KiB", (part) => {
    const read = (start: string) => {
      const path = start + part.repeat(AMBIGUOUS_PATH_MAX_CHARS);
      return readCounted(path.slice(0, AMBIGUOUS_PATH_MAX_CHARS));
    };
    const [verdict, reads] = read("/a%5c;");
    // Each character once, and the beginning again when it is compared with the prefix.
    expect(verdict).toBe("allowed");
    expect(reads).toBeLessThan(2 * AMBIGUOUS_PATH_MAX_CHARS);
    // And again from each place at which a host can end.
    const [, readsWithHost] = read("//a%5cb\\c;");
    expect(readsWithHost).toBeLessThan(5 * AMBIGUOUS_PATH_MAX_CHARS);
  });

  test.each(HOSTILE)("many times %s is refused unread beyond 4 KiB", (part) => {
    const path = `/%5c;${part.repeat(AMBIGUOUS_PATH_MAX_CHARS)}`;
    expect(readCounted(path)).toEqual(["too_long", 0]);
  });

  test("may have any length if it has only one interpretation", () => {
    const path = `/${"public/".repeat(20_000)}`;
    expect(checkPath(["/never"], path)).toBe("allowed");
    expect(checkPath(["/PUBLIC"], path)).toBe("denied");
  });

  test.each(["", "/%61", ";a"])(
    "are shortened to one with the same verdict, ending in '%s'",
    (end) => {
      const path = `/${"public/".repeat(20_000)}a${end}`;
      const short = shortenPath(path);
      expect(short.length).toBeLessThan(2 * AMBIGUOUS_PATH_MAX_CHARS);
      for (const denied of [["/never"], ["/PUBLIC"]]) {
        expect(checkPath(denied, short)).toBe(checkPath(denied, path));
      }
      expect(shortenPath("/a%62")).toBe("/a%62");
    },
  );
});
