import { describe, expect, test } from "vitest";
import { HostHeader, parseHostMode } from "../../../agent/host-header.ts";
import { parseTarget } from "../../../agent/target.ts";

const REQUEST = [
  ["host", "shop.tunnel.test"],
  ["origin", "https://shop.tunnel.test"],
  ["referer", "https://shop.tunnel.test/cart?a=b"],
  ["x-forwarded-host", "shop.tunnel.test"],
].flat();
const VITE = 'Blocked request. This host ("shop.tunnel.test") is not allowed.';

function newHostHeader(mode: string): HostHeader {
  return new HostHeader(parseHostMode(mode), parseTarget("3000")!);
}

function rewritten(hostHeader: HostHeader, pairs = REQUEST): Record<string, string> {
  const copy = [...pairs];
  hostHeader.rewriteRequest(copy);
  return Object.fromEntries(
    Array.from({ length: copy.length / 2 }, (_, i) => [copy[2 * i]!, copy[2 * i + 1]!]),
  );
}

function locationOf(hostHeader: HostHeader, location: string): string {
  const pairs = ["Location", location];
  hostHeader.rewriteResponse(pairs, "https://shop.tunnel.test");
  return pairs[1]!;
}

describe("the host header", () => {
  test("that is preserved leaves every line as it came", () => {
    expect(rewritten(newHostHeader("preserve"))).toEqual(rewritten(newHostHeader("auto")));
    expect(rewritten(newHostHeader("preserve")).host).toBe("shop.tunnel.test");
    expect(locationOf(newHostHeader("preserve"), "http://localhost:3000/x")).toBe(
      "http://localhost:3000/x",
    );
  });

  test("that is rewritten is the local server's own, in Origin and Referer too", () => {
    expect(rewritten(newHostHeader("rewrite"))).toEqual({
      host: "localhost:3000",
      origin: "http://localhost:3000",
      referer: "http://localhost:3000/cart?a=b",
      "x-forwarded-host": "shop.tunnel.test",
    });
  });

  test.each(["https://shop.tunnel.test.evil", "https://evil", "null", "http://shop.tunnel.test:1"])(
    "that is rewritten does not lend its name to the origin %s",
    (origin) => {
      const pairs = ["host", "shop.tunnel.test", "origin", origin];
      expect(rewritten(newHostHeader("rewrite"), pairs).origin).toBe(origin);
    },
  );

  test("that is given is said, and nothing else changes", () => {
    const { host, origin } = rewritten(newHostHeader("app.test"));
    expect(host).toBe("app.test");
    expect(origin).toBe("https://shop.tunnel.test");
  });

  test.each([
    ["http://localhost:3000/login", "https://shop.tunnel.test/login"],
    ["http://localhost:3000", "https://shop.tunnel.test"],
    ["http://localhost:3000?a", "https://shop.tunnel.test?a"],
    ["http://localhost:30001/", "http://localhost:30001/"],
    ["http://localhost:3000.evil/", "http://localhost:3000.evil/"],
    ["/relative", "/relative"],
    ["https://elsewhere.test/", "https://elsewhere.test/"],
  ])("that is rewritten turns a redirect to %s into %s", (location, expected) => {
    expect(locationOf(newHostHeader("rewrite"), location)).toBe(expected);
  });
});

describe("in the automatic mode", () => {
  test.each([VITE, "Invalid Host header", "Invalid Host/Origin header"])(
    "the refusal %j switches to the local server's own name, once",
    (refusal) => {
      const hostHeader = newHostHeader("auto");
      expect(hostHeader.mayBeRefusal(403)).toBe(true);
      expect(hostHeader.rewriteIfRefused(refusal)).toBe(true);
      expect(rewritten(hostHeader).host).toBe("localhost:3000");
      expect(hostHeader.mayBeRefusal(403)).toBe(false);
      expect(hostHeader.rewriteIfRefused(refusal)).toBe(false);
    },
  );

  test("an application's own 403 stays what it is", () => {
    const hostHeader = newHostHeader("auto");
    expect(hostHeader.rewriteIfRefused("<h1>Forbidden</h1>")).toBe(false);
    expect(hostHeader.mayBeRefusal(200)).toBe(false);
    expect(hostHeader.mayBeRefusal(404)).toBe(false);
    expect(rewritten(hostHeader).host).toBe("shop.tunnel.test");
  });

  test("only that mode looks at answers", () => {
    for (const mode of ["preserve", "rewrite", "app.test"]) {
      expect(newHostHeader(mode).mayBeRefusal(403)).toBe(false);
      expect(newHostHeader(mode).rewriteIfRefused(VITE)).toBe(false);
    }
  });
});
