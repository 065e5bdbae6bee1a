import { describe, expect, test } from "vitest";
import {
  getAddressTrust,
  getClientAddress,
  type ClientAddressSettings,
} from "../../../shared/client-address.ts";

const SELF_HOSTED = { onCloudflare: false, trustProxy: false };
const BEHIND_PROXY = { onCloudflare: false, trustProxy: true };
const HOSTED = { onCloudflare: true, trustProxy: false };

function request(clientIp: string | undefined, headers: Record<string, string> = {}) {
  return { headers: new Headers(headers), cf: clientIp === undefined ? undefined : { clientIp } };
}

describe("a visitor's address", () => {
  test.each([
    ["192.0.2.1:1234", "192.0.2.1"],
    ["192.0.2.1", "192.0.2.1"],
    ["[2001:db8::1]:443", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["unix:", "unix"],
  ])("is the platform's %s without its port", (clientIp, address) => {
    expect(getClientAddress(request(clientIp), SELF_HOSTED)).toBe(address);
  });

  test("can't be set by any header of the visitor", () => {
    const forged = Object.fromEntries(
      ["x-forwarded-for", "cf-connecting-ip", "x-real-ip", "true-client-ip", "forwarded"].map(
        (name) => [name, "203.0.113.9"],
      ),
    );
    expect(getClientAddress(request("192.0.2.1:1", forged), SELF_HOSTED)).toBe("192.0.2.1");
    expect(getClientAddress(request(undefined, forged), SELF_HOSTED)).toBe("");
  });

  test("is the one that the operator's own proxy added, whatever the visitor sent", () => {
    const headers = { "x-forwarded-for": "203.0.113.9, 198.51.100.7" };
    expect(getClientAddress(request("127.0.0.1:1", headers), BEHIND_PROXY)).toBe("198.51.100.7");
    expect(getClientAddress(request("127.0.0.1:1"), BEHIND_PROXY)).toBe("127.0.0.1");
    expect(getClientAddress(request("127.0.0.1:1", { "x-forwarded-for": "" }), BEHIND_PROXY)).toBe(
      "127.0.0.1",
    );
  });

  test.each(["::ffff:192.0.2.7", "::ffff:c000:207", "[::ffff:192.0.2.7]:443"])(
    "is IPv4 when the operator's own proxy writes it as %s",
    (written) => {
      const headers = { "x-forwarded-for": written };
      expect(getClientAddress(request("127.0.0.1:1", headers), BEHIND_PROXY)).toBe("192.0.2.7");
    },
  );

  test("is the platform's header where only the platform can set it", () => {
    const headers = { "cf-connecting-ip": "2001:db8::2", "x-forwarded-for": "203.0.113.9" };
    expect(getClientAddress(request("10.0.0.1:1", headers), HOSTED)).toBe("2001:db8::2");
    expect(getClientAddress(request("10.0.0.1:1"), HOSTED)).toBe("");
  });

  test("is the platform's header on Cloudflare and under wrangler dev only", () => {
    const visit = request("10.0.0.1:1", { "cf-connecting-ip": "192.0.2.1" });
    const read = (settings: ClientAddressSettings) =>
      getClientAddress(visit, getAddressTrust(settings));
    expect(read({ HOSTED: "true" })).toBe("192.0.2.1");
    expect(read({ WRANGLER_DEV: "true" })).toBe("192.0.2.1");
    expect(read({})).toBe("10.0.0.1");
  });
});

test("forwarded addresses are trusted only with the setting for it", () => {
  expect(getAddressTrust({})).toEqual(SELF_HOSTED);
  expect(getAddressTrust({ TRUST_PROXY: "false" })).toEqual(SELF_HOSTED);
  expect(getAddressTrust({ TRUST_PROXY: "true" })).toEqual(BEHIND_PROXY);
});
