import { describe, expect, test } from "vitest";
import {
  describeInvalidAddress,
  findOriginWithoutPath,
  getLookup,
  parseTarget,
} from "../../../../agent/origin/target.ts";

describe("a local server", () => {
  test.each([
    ["3000", "http://localhost:3000"],
    [" 3000 ", "http://localhost:3000"],
    ["localhost:3000", "http://localhost:3000"],
    ["app.test:8080", "http://app.test:8080"],
    ["127.0.0.1:80", "http://127.0.0.1"],
    ["[::1]:3000", "http://[::1]:3000"],
    ["http://app.test", "http://app.test"],
    ["http://3000x", "http://3000x"],
    ["3000x:80", "http://3000x"],
    ["3.test", "http://3.test"],
    ["127.0.0.1", "http://127.0.0.1"],
    ["https://app.test", "https://app.test"],
    ["https://app.test:8443/", "https://app.test:8443"],
    ["HTTP://App.Test:8080", "http://app.test:8080"],
  ])("may be written %s", (text, origin) => {
    expect(parseTarget(text)?.origin).toBe(origin);
  });

  test("has its scheme's default port when none is given", () => {
    expect(parseTarget("http://app.test")?.port).toBe(80);
    expect(parseTarget("https://app.test")?.port).toBe(443);
  });

  test.each([
    "",
    "0",
    "70000",
    "3000000",
    "3000x",
    "3000,",
    "3000.",
    "0x1f90",
    "3000/path",
    "localhost:3000?query",
    "http://localhost:3000/#x",
    "ftp://localhost",
    "file:///etc/passwd",
    "http://user:secret@localhost",
    "http://user@localhost",
    "http://:secret@localhost",
    "http://",
    "local host:3000",
    "localhost:port",
  ])("is not %j", (text) => {
    expect(parseTarget(text)).toBeNull();
  });

  test.each([
    ["3000/path", "http://localhost:3000"],
    ["app.test:3000/path", "http://app.test:3000"],
    ["http://app.test/path", "http://app.test"],
    ["https://app.test?query", "https://app.test"],
    // Perhaps a file.
    ["app.test/path", null],
    ["ftp://app.test/path", null],
    ["http://user@app.test/path", null],
    ["http://app.test:0/path", null],
  ])("is suggested without the path of %s: %s", (text, origin) => {
    expect(findOriginWithoutPath(text)).toBe(origin);
  });

  test.each([
    ["0", "the port must be a number from 1 to 65535, not 0"],
    ["localhost:65536", "the port must be a number from 1 to 65535, not 65536"],
    ["http://[::1]:70000", "the port must be a number from 1 to 65535, not 70000"],
    ["ftp://app.test:1", "ftp://app.test:1 is not a port or host:port"],
    ["ftp://app.test:65535", "ftp://app.test:65535 is not a port or host:port"],
    ["3000x", "3000x is not a port or host:port: a port has digits only"],
    ["file:///a", "file:///a is not a port or host:port"],
  ])("that is not %s is refused with the reason: %s", (text, reason) => {
    expect(describeInvalidAddress(text, "port or host:port")).toBe(reason);
  });

  test("called localhost has both loopback addresses; other names are resolved by the machine", () => {
    const addresses: unknown[] = [];
    getLookup(parseTarget("3000")!)?.("localhost", { all: true }, (_, found) =>
      addresses.push(found),
    );
    expect(addresses).toEqual([
      [
        { address: "127.0.0.1", family: 4 },
        { address: "::1", family: 6 },
      ],
    ]);
    expect(getLookup(parseTarget("app.test:3000")!)).toBeUndefined();
  });
});
