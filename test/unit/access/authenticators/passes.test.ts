import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { isAllowedEmail } from "../../../../access/identity.ts";
import { IssuerKeys } from "../../../../access/authenticators/issuer-keys.ts";
import {
  PASS_TYPE,
  PassAuthenticator,
  VISITOR_PASS_MAX_CHARS,
} from "../../../../access/authenticators/passes.ts";
import { getConfig } from "../../../../workers/config/config.ts";
import { sha256Hex } from "../../../../workers/identity/encryption.ts";
import { signVisitorPass } from "../../../../workers/identity/visitors/visitor-passes.ts";
import {
  decryptVisitorTicket,
  encryptVisitorTicket,
} from "../../../../workers/identity/visitors/visitor-tickets.ts";

const NOW = Date.UTC(2026, 5, 1);
const HOUR_MS = 3600_000;
const TUNNEL = "00000000-0000-4000-8000-00000000000a";
const GATE = { tunnelId: TUNNEL, domains: [], emails: ["ann@example.com"] };
const HOST = "shop.localhost";

let signing: { privateKey: CryptoKey; publicKey: CryptoKey };
let publicJwk: object;
let nowMs: number;
let isDown: boolean;
let authenticator: PassAuthenticator;

beforeAll(async () => {
  signing = await generateKeyPair("ES256", { extractable: true });
  publicJwk = { ...(await exportJWK(signing.publicKey)), kid: "k", alg: "ES256", use: "sig" };
});
beforeEach(() => {
  nowMs = NOW;
  isDown = false;
  const load = () =>
    isDown ? Promise.reject(new Error("down")) : Promise.resolve({ keys: [publicJwk] as never });
  const now = () => nowMs;
  authenticator = new PassAuthenticator({ keys: new IssuerKeys(load, now), now });
});

interface PassChanges {
  claims?: JWTPayload;
  header?: Record<string, unknown>;
  key?: CryptoKey | Uint8Array;
}

function pass({ claims = {}, header = {}, key = signing.privateKey }: PassChanges = {}) {
  const seconds = NOW / 1000;
  const validClaims = { email: "ann@example.com", tunnel: TUNNEL, aud: HOST, exp: seconds + 3600 };
  return new SignJWT({ ...validClaims, iat: seconds, ...claims })
    .setProtectedHeader({ alg: "ES256", typ: PASS_TYPE, kid: "k", ...header })
    .sign(key);
}

test("a pass is valid for its tunnel and host until it expires", async () => {
  const valid = await pass();
  for (const beforeEndMs of [HOUR_MS, 60_000, 1_000]) {
    nowMs = NOW + HOUR_MS - beforeEndMs;
    expect(await authenticator.check(GATE, HOST, [valid])).toBe("allowed");
  }
  nowMs = NOW + HOUR_MS;
  expect(await authenticator.check(GATE, HOST, [valid])).toBe("signed_out");
});

test("the allow lists apply as they are at the request, not as they were at sign-in", async () => {
  const valid = await pass();
  expect(await authenticator.check(GATE, HOST, [valid])).toBe("allowed");
  const without = { ...GATE, emails: ["bob@example.com"] };
  expect(await authenticator.check(without, HOST, [valid])).toEqual({ denied: "ann@example.com" });
});

test("a cached pass is not valid for another tunnel or host", async () => {
  const valid = await pass();
  expect(await authenticator.check(GATE, HOST, [valid])).toBe("allowed");
  const other = { ...GATE, tunnelId: "00000000-0000-4000-8000-00000000000b" };
  expect(await authenticator.check(other, HOST, [valid])).toBe("signed_out");
  expect(await authenticator.check(GATE, "other.localhost", [valid])).toBe("signed_out");
});

describe("a pass is not valid", () => {
  test("when it is longer than 2 KiB", async () => {
    const long = (chars: number) => pass({ claims: { padding: "x".repeat(chars) } });
    expect(await authenticator.check(GATE, HOST, [await long(1_100)])).toBe("allowed");
    expect(await authenticator.check(GATE, HOST, [await long(2_048)])).toBe("signed_out");
  });

  test.each<[string, PassChanges]>([
    ["of another type", { header: { typ: "at+jwt" } }],
    ["without a type", { header: { typ: undefined } }],
    ["that never expires", { claims: { exp: undefined } }],
    ["before its start", { claims: { nbf: NOW / 1000 + 60 } }],
    ["for no host", { claims: { aud: undefined } }],
    ["for no tunnel", { claims: { tunnel: undefined } }],
    ["without an email address", { claims: { email: undefined } }],
    ["that contains its own key", { header: { jwk: {}, jku: "http://evil.test", kid: "other" } }],
  ])("%s", async (_, changes) => {
    expect(await authenticator.check(GATE, HOST, [await pass(changes)])).toBe("signed_out");
  });

  test("signed with another key, with a MAC, or not at all", async () => {
    const otherKey = (await generateKeyPair("ES256")).privateKey;
    const mac = new TextEncoder().encode(JSON.stringify(publicJwk));
    const valid = await pass();
    const [, payload = "", signature = ""] = valid.split(".");
    const none = btoa(JSON.stringify({ alg: "none", typ: PASS_TYPE })).replace(/=+$/, "");
    const forged = [
      await pass({ key: otherKey }),
      await pass({ key: mac, header: { alg: "HS256" } }),
      ...[`${none}.${payload}.`, `${none}.${payload}.${signature}`, `.${payload}.${signature}`],
      ...["", ".", "..", "a.b.c", valid.slice(0, -4), `${valid}.x`, "x".repeat(100_000)],
      "A".repeat(VISITOR_PASS_MAX_CHARS),
    ];
    for (const one of forged)
      expect(await authenticator.check(GATE, HOST, [one])).toBe("signed_out");
    expect(await authenticator.check(GATE, HOST, [...forged, valid])).toBe("allowed");
  });
});

test("no pass is accepted while the keys are unavailable", async () => {
  isDown = true;
  expect(await authenticator.check(GATE, HOST, [await pass()])).toHaveProperty("keysDownForMs");
});

describe("an email address on an allow list", () => {
  const emails = ["ann@example.com"];
  test.each([
    [{ domains: [], emails: [] }, "visitor@any.test", true],
    [{ domains: [], emails }, "ann@example.com", true],
    [{ domains: [], emails }, "bob@example.com", false],
    [{ domains: [], emails }, "ann@example.com.evil.test", false],
    [{ domains: ["example.com"], emails: [] }, "bob@example.com", true],
    [{ domains: ["example.com"], emails: [] }, "bob@sub.example.com", false],
    [{ domains: ["example.com"], emails: [] }, "bob@notexample.com", false],
    [{ domains: ["example.com"], emails: [] }, "example.com@evil.test", false],
    [{ domains: ["example.com"], emails: [] }, '"a@example.com"@evil.test', false],
    [{ domains: ["example.com"], emails: [] }, '"a@evil.test"@example.com', true],
    [{ domains: ["other.test"], emails }, "ann@example.com", true],
  ])("%j: %s, %s", (list, email, isAllowed) => {
    expect(isAllowedEmail(list, email)).toBe(isAllowed);
  });
});

describe("a ticket", () => {
  const settings = { ENCRYPTION_KEY: btoa("k".repeat(32)), TOKEN_SIGNING_KEY: "not used" };
  const config = getConfig({ ...settings, JWT_PRIVATE_KEY: "not used" });
  const place = { tunnelId: TUNNEL, host: HOST };
  const visit = { ...place, browser: "b".repeat(43), email: "ann@example.com", target: "/a" };

  test("is valid for a minute, for its tunnel on its host", async () => {
    const ticket = await encryptVisitorTicket(config, visit, NOW);
    expect(await decryptVisitorTicket(config, ticket, place, NOW + 59_999)).toMatchObject(visit);
    expect(await decryptVisitorTicket(config, ticket, place, NOW + 60_000)).toBeNull();
    const tunnelId = "00000000-0000-4000-8000-00000000000b";
    expect(await decryptVisitorTicket(config, ticket, { ...place, tunnelId }, NOW)).toBeNull();
    expect(
      await decryptVisitorTicket(config, ticket, { ...place, host: "b.localhost" }, NOW),
    ).toBeNull();
  });

  test("does not reveal the email address, and is not valid when it was changed", async () => {
    const ticket = await encryptVisitorTicket(config, visit, NOW);
    expect(atob(ticket.split(".").at(-1)!.replaceAll("-", "+").replaceAll("_", "/"))).not.toContain(
      "ann",
    );
    const end = ticket.endsWith("AA") ? "BA" : "AA";
    for (const changed of ["", "v1...", ticket.slice(0, -2) + end, await sha256Hex(ticket)]) {
      expect(await decryptVisitorTicket(config, changed, place, NOW)).toBeNull();
    }
  });

  test("is exchanged for a pass that the gate accepts", async () => {
    const { d } = await exportJWK(signing.privateKey);
    const JWT_PRIVATE_KEY = JSON.stringify({ ...publicJwk, d });
    const signed = await signVisitorPass(getConfig({ ...settings, JWT_PRIVATE_KEY }), visit);
    nowMs = Date.now();
    expect(await authenticator.check(GATE, HOST, [signed])).toBe("allowed");
  });
});
