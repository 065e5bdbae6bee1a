import { expect, test } from "vitest";
import { parseDomain } from "../../../../../workers/api/domains/domain-names.ts";

const CONFIG = {
  SERVICE_DOMAIN: "tunnels.test",
  API_HOSTS: new Set(["console.company.test", "127.0.0.1"]),
};
const name = (text: string) => parseDomain(CONFIG, text);

test.each([
  ["shop.example", "shop.example"],
  ["Shop.EXAMPLE", "shop.example"],
  [" shop.example. ", "shop.example"],
  ["a.b.c.example.co.uk", "a.b.c.example.co.uk"],
  ["bücher.example", "xn--bcher-kva.example"],
  ["BÜCHER.example", "xn--bcher-kva.example"],
  ["faß.example", "xn--fa-hia.example"],
  ["例え.テスト", "xn--r8jz45g.xn--zckzah"],
  ["shop。example", "shop.example"],
  ["ｓｈｏｐ.example", "shop.example"],
  ["xn--bcher-kva.example", "xn--bcher-kva.example"],
  ["mine.github.io", "mine.github.io"],
  ["notunnels.test", "notunnels.test"],
  ["company.test", "company.test"],
  [`${"a".repeat(63)}.example`, `${"a".repeat(63)}.example`],
])("%j is %s", (text, domain) => expect(name(text)).toEqual({ domain }));

test.each([
  ["nothing", ""],
  ["spaces", "  "],
  ["a single label", "shop"],
  ["the name of a machine", "localhost"],
  ["an IPv4 address", "192.0.2.1"],
  ["an IPv4 address in disguise", "0x7f.1"],
  ["an IPv4 address in another script", "１２７.0.0.1"],
  ["an IPv4 address as one number", "3232235777"],
  ["an IPv6 address", "[2001:db8::1]"],
  ["an IPv6 address without brackets", "2001:db8::1"],
  ["a numeric top-level domain", "shop.123"],
  ["a wildcard", "*.shop.example"],
  ["an underscore", "_dmarc.shop.example"],
  ["an empty label", "shop..example"],
  ["a leading dot", ".shop.example"],
  ["only a dot", "."],
  ["two dots at the end", "shop.example.."],
  ["a leading hyphen", "-shop.example"],
  ["a trailing hyphen", "shop-.example"],
  ["a label of 64 characters", `${"a".repeat(64)}.example`],
  ["a name for which no proof would fit", `${"a.".repeat(116)}example`],
  ["a URL", "https://shop.example"],
  ["a port", "shop.example:443"],
  ["a path", "shop.example/x"],
  ["a user", "a@shop.example"],
  ["a query", "shop.example?x"],
  ["an escape", "sh%6fp.example"],
  ["a space within", "shop .example"],
  ["a control character", "shop\u0000.example"],
  ["a backslash", "shop\\.example"],
  ["a public suffix", "com"],
  ["a public suffix of two labels", "co.uk"],
  ["a public suffix of a wildcard rule", "anything.ck"],
  ["a company's public suffix", "github.io"],
  ["a public suffix in another script", "公司.cn"],
  ["our tunnels' domain", "tunnels.test"],
  ["a tunnel", "shop.tunnels.test"],
  ["a name below a tunnel", "a.shop.tunnels.test"],
  ["a tunnel in capitals and with a dot", "SHOP.Tunnels.Test."],
  ["the API's host", "console.company.test"],
  ["a name below the API's host", "x.console.company.test"],
])("%s cannot be claimed", (_, text) => expect(name(text)).toEqual({ error: expect.any(String) }));

test("a label that is too long is refused with its length", () => {
  const error = "must have at most 63 characters between two dots, and has 64";
  expect(name(`shop.${"a".repeat(64)}.example`)).toEqual({ error });
});
