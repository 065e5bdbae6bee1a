/** The bytes of https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, §2.1 and §2.2. */
import { expect, test } from "vitest";
import { encodeProxyHeader } from "../../../../agent/tcp/proxy-protocol.ts";

const ipv4 = {
  address: "203.0.113.7",
  port: 56324,
  localAddress: "198.51.100.1",
  localPort: 443,
};
const ipv6 = { ...ipv4, address: "2001:db8::7", localAddress: "2001:db8::1" };
const SIGNATURE = "0d0a0d0a000d0a515549540a";

test.each([
  ["IPv4", ipv4, "PROXY TCP4 203.0.113.7 198.51.100.1 56324 443\r\n"],
  ["IPv6", ipv6, "PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n"],
  ["an unknown address", { ...ipv4, address: "" }, "PROXY UNKNOWN\r\n"],
])("version 1 of a visitor with %s", (_kind, head, line) => {
  expect(encodeProxyHeader("v1", head).toString()).toBe(line);
});

test.each([
  // Version 2 and command PROXY, TCP over IPv4, 12 bytes: two addresses and two ports.
  ["IPv4", ipv4, "21" + "11" + "000c" + "cb007107" + "c6336401" + "dc04" + "01bb"],
  [
    "IPv6",
    ipv6,
    "21" +
      "21" +
      "0024" +
      "20010db8000000000000000000000007" +
      "20010db8000000000000000000000001" +
      "dc04" +
      "01bb",
  ],
  // Command LOCAL, unspecified, nothing else.
  ["an unknown address", { ...ipv4, address: "" }, "20" + "00" + "0000"],
])("version 2 of a visitor with %s", (_kind, head, rest) => {
  expect(encodeProxyHeader("v2", head).toString("hex")).toBe(SIGNATURE + rest);
});

test("a destination of another family, or none, is the unspecified address", () => {
  const head = { ...ipv6, port: 0, localAddress: "", localPort: 0 };
  expect(encodeProxyHeader("v1", head).toString()).toBe("PROXY TCP6 2001:db8::7 :: 0 0\r\n");
  const mixed = { ...ipv4, localAddress: "2001:db8::1" };
  expect(encodeProxyHeader("v1", mixed).toString()).toBe(
    "PROXY TCP4 203.0.113.7 0.0.0.0 56324 443\r\n",
  );
});
