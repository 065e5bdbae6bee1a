import { describe, expect, test } from "vitest";
import { getAuthority, parseHost, toRouteName } from "../../../../protocol/hosts.ts";
import { parseApiHosts } from "../../../../protocol/public-address.ts";

const DOMAIN = "tunnel.test";
const toRoute = (authority: string) => {
  const host = parseHost(authority);
  return host === null ? "invalid" : toRouteName(host, DOMAIN);
};

describe("a Host header", () => {
  test.each([
    ["shop.tunnel.test", "shop"],
    ["SHOP.Tunnel.TEST", "shop"],
    ["shop.tunnel.test.", "shop"],
    ["shop.tunnel.test:8787", "shop"],
    ["shop.tunnel.test.:8787", "shop"],
    ["shop.tunnel.test:", "shop"],
    ["api--v2_x.tunnel.test", "api--v2_x"],
    ["www.customer.example", "www.customer.example"],
    ["shop.tunnel.test.evil", "shop.tunnel.test.evil"],
    ["eviltunnel.test", "eviltunnel.test"],
  ])("%s leads to %s", (authority, route) => {
    expect(toRoute(authority)).toBe(route);
  });

  test.each(["tunnel.test", "a.shop.tunnel.test", "localhost", "[::1]:80", "nodots"])(
    "%s leads to no tunnel",
    (authority) => expect(toRoute(authority)).toBeNull(),
  );

  test.each([
    "",
    ".",
    "..",
    ".tunnel.test",
    "shop..tunnel.test",
    "shop.tunnel.test..",
    "shop.tunnel.test@evil.test",
    "evil.test@shop.tunnel.test",
    "shop.tunnel.test:80:80",
    "shop.tunnel.test:port",
    "shop%2etunnel.test",
    "shop tunnel.test",
    "shop\\.tunnel.test",
    "shop.tunnel.test,other.tunnel.test",
    "bücher.tunnel.test",
    "[shop]",
    "shop.tunnel.test:65536",
    "shop.tunnel.test.:99999",
    `${"a".repeat(300)}.tunnel.test`,
  ])("%j is not a host name", (authority) => expect(parseHost(authority)).toBeNull());

  test("is taken from the URL's text, since a URL parser would change it", () => {
    expect(getAuthority("http://a@b.test:99/x")).toBe("a@b.test:99");
    expect(getAuthority("http://shop.tunnel.test")).toBe("shop.tunnel.test");
    expect(getAuthority("http://shop.tunnel.test//evil.test/x")).toBe("shop.tunnel.test");
    expect(getAuthority("http:///x")).toBe("");
  });
});

describe("the service's own hosts", () => {
  test("are by default the domain, its api subdomain and this machine", () => {
    expect(parseApiHosts(DOMAIN, undefined)).toEqual([DOMAIN, `api.${DOMAIN}`, "127.0.0.1"]);
  });

  test("are the configured ones, in any case and spacing", () => {
    expect(parseApiHosts(DOMAIN, " Console.Example.com, ,api.example.com ")).toEqual([
      "console.example.com",
      "api.example.com",
    ]);
  });
});
