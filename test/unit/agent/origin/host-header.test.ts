import { describe, expect, test } from "vitest";
import { HostHeader, parseHostMode } from "../../../../agent/origin/host-header.ts";
import { parseTarget } from "../../../../agent/origin/target.ts";

const REQUEST = [
  ["host", "shop.tunnel.test"],
  ["origin", "https://shop.tunnel.test"],
  ["referer", "https://shop.tunnel.test/cart?a=b"],
  ["x-forwarded-host", "shop.tunnel.test"],
].flat();
const VITE = 'Blocked request. This host ("shop.tunnel.test") is not allowed.';

function newHostHeader(mode: string): HostHeader {
  return new HostHeader(parseHostMode(mode, "--host-header"), parseTarget("3000")!);
}

function rewritten(hostHeader: HostHeader, pairs = REQUEST): Record<string, string> {
  const copy = [...pairs];
  hostHeader.rewriteRequest(copy);
  return Object.fromEntries(
    Array.from({ length: copy.length / 2 }, (_, i) => [copy[2 * i]!, copy[2 * i + 1]!]),
  );
}

function rewriteLocation(hostHeader: HostHeader, location: string): string {
  const pairs = ["Location", location];
  hostHeader.rewriteResponse(pairs, "https://shop.tunnel.test");
  return pairs[1]!;
}

describe("the host header", () => {
  test("in the mode preserve changes no header", () => {
    expect(rewritten(newHostHeader("preserve"))).toEqual(rewritten(newHostHeader("auto")));
    expect(rewritten(newHostHeader("preserve")).host).toBe("shop.tunnel.test");
    expect(rewriteLocation(newHostHeader("preserve"), "http://localhost:3000/x")).toBe(
      "http://localhost:3000/x",
    );
  });

  test("in the mode rewrite is the local server's own, in Origin and Referer too", () => {
    expect(rewritten(newHostHeader("rewrite"))).toEqual({
      host: "localhost:3000",
      origin: "http://localhost:3000",
      referer: "http://localhost:3000/cart?a=b",
      "x-forwarded-host": "shop.tunnel.test",
    });
  });

  test.each(["https://shop.tunnel.test.evil", "https://evil", "null", "http://shop.tunnel.test:1"])(
    "in the mode rewrite leaves the foreign origin %s unchanged",
    (origin) => {
      const pairs = ["host", "shop.tunnel.test", "origin", origin];
      expect(rewritten(newHostHeader("rewrite"), pairs).origin).toBe(origin);
    },
  );

  test("that is given is sent, and nothing else changes", () => {
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
  ])("in the mode rewrite turns a redirect to %s into %s", (location, expected) => {
    expect(rewriteLocation(newHostHeader("rewrite"), location)).toBe(expected);
  });
});

describe("the mode auto", () => {
  test.each([VITE, "Invalid Host header", "Invalid Host/Origin header"])(
    "switches to the local server's own name after the refusal %j, once",
    (refusal) => {
      const hostHeader = newHostHeader("auto");
      expect(hostHeader.mayBeRefusal(403)).toBe(true);
      expect(hostHeader.rewriteIfRefused(refusal)).toBe(true);
      expect(rewritten(hostHeader).host).toBe("localhost:3000");
      expect(hostHeader.mayBeRefusal(403)).toBe(false);
      expect(hostHeader.rewriteIfRefused(refusal)).toBe(false);
    },
  );

  test("does not change an application's own 403", () => {
    const hostHeader = newHostHeader("auto");
    expect(hostHeader.rewriteIfRefused("<h1>Forbidden</h1>")).toBe(false);
    expect(hostHeader.mayBeRefusal(200)).toBe(false);
    expect(hostHeader.mayBeRefusal(404)).toBe(false);
    expect(rewritten(hostHeader).host).toBe("shop.tunnel.test");
  });

  test("is the only mode that inspects responses", () => {
    for (const mode of ["preserve", "rewrite", "app.test"]) {
      expect(newHostHeader(mode).mayBeRefusal(403)).toBe(false);
      expect(newHostHeader(mode).rewriteIfRefused(VITE)).toBe(false);
    }
  });
});
