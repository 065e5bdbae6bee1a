import { describe, expect, test } from "vitest";
import { discoverKeys, ISSUER_KEYS_MAX } from "../../../../access/authenticators/issuer-keys.ts";

const ISSUER = "https://issuer.example";
const OTHER = "https://other.example/tenant";

describe("a discovery document", () => {
  const jwks = { keys: [{ kty: "EC", kid: "one" }] };
  const pages =
    (document: unknown, keys: unknown = jwks) =>
    (url: string) =>
      Promise.resolve(url.endsWith("/.well-known/openid-configuration") ? document : keys);

  test("names the URL of the keys", async () => {
    const document = { issuer: OTHER, jwks_uri: "https://cdn.example/jwks" };
    const seen: string[] = [];
    const fetched = (url: string) => (seen.push(url), pages(document)(url));
    expect(await discoverKeys(OTHER, fetched)).toEqual(jwks);
    expect(seen).toEqual([`${OTHER}/.well-known/openid-configuration`, "https://cdn.example/jwks"]);
  });

  test("leads to public keys without what nothing reads, and without those that verify nothing", async () => {
    const document = { issuer: OTHER, jwks_uri: "https://cdn.example/jwks" };
    const rsa = { kty: "RSA", n: "x".repeat(1_366), e: "AQAB" };
    const keys = [
      { kty: "EC", kid: "one", x5c: ["certificate".repeat(1_000)] },
      { kty: "oct", kid: "symmetric", k: "secret" },
      { ...rsa, kid: "8,192 bits" },
      { ...rsa, kid: "16,384 bits", n: "x".repeat(2_731) },
      "no key",
    ];
    const loaded = await discoverKeys(OTHER, pages(document, { keys }));
    expect(loaded).toEqual({
      keys: [
        { kty: "EC", kid: "one" },
        { ...rsa, kid: "8,192 bits" },
      ],
    });
  });

  test.each([
    ["of another issuer", { issuer: ISSUER, jwks_uri: "https://cdn.example/jwks" }, jwks],
    ["without keys", { issuer: OTHER }, jwks],
    ["whose key URL is not an HTTP URL", { issuer: OTHER, jwks_uri: "file:///etc/passwd" }, jwks],
    ["that is none", "hello", jwks],
    [
      "with a malformed key set",
      { issuer: OTHER, jwks_uri: "https://cdn.example/jwks" },
      { keys: "x" },
    ],
    [
      "with too many keys",
      { issuer: OTHER, jwks_uri: "https://cdn.example/jwks" },
      { keys: Array(ISSUER_KEYS_MAX + 1).fill({ kty: "EC" }) },
    ],
  ])("%s is refused", async (_, document, keys) => {
    await expect(discoverKeys(OTHER, pages(document, keys))).rejects.toThrow();
  });
});
