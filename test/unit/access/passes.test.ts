import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { isOnList } from "../../../access/identity.ts";
import { IssuerKeys } from "../../../access/issuer-keys.ts";
import { PASS_TYPE, PassGate, VISITOR_PASS_MAX_CHARS } from "../../../access/passes.ts";
import { configOf } from "../../../workers/config/config.ts";
import { sha256Hex } from "../../../workers/identity/sealing.ts";
import {
  openTicket,
  sealTicket,
  signPass,
} from "../../../workers/identity/visitors/visitor-passes.ts";

const NOW = Date.UTC(2026, 5, 1);
const HOUR_MS = 3600_000;
const TUNNEL = "00000000-0000-4000-8000-00000000000a";
const GATE = { tunnelId: TUNNEL, domains: [], emails: ["ann@example.com"] };
const HOST = "shop.localhost";

let signing: { privateKey: CryptoKey; publicKey: CryptoKey };
let publicJwk: object;
let nowMs: number;
let isDown: boolean;
let gate: PassGate;

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
  gate = new PassGate({ keys: new IssuerKeys(load, now), now });
});

interface Changes {
  claims?: JWTPayload;
  header?: Record<string, unknown>;
  key?: CryptoKey | Uint8Array;
}

function pass({ claims = {}, header = {}, key = signing.privateKey }: Changes = {}) {
  const seconds = NOW / 1000;
  const honest = { email: "ann@example.com", tunnel: TUNNEL, aud: HOST, exp: seconds + 3600 };
  return new SignJWT({ ...honest, iat: seconds, ...claims })
    .setProtectedHeader({ alg: "ES256", typ: PASS_TYPE, kid: "k", ...header })
    .sign(key);
}

test("a pass is good where it was made for, until it ends", async () => {
  const good = await pass();
  for (const beforeEndMs of [HOUR_MS, 60_000, 1_000]) {
    nowMs = NOW + HOUR_MS - beforeEndMs;
    expect(await gate.check(GATE, HOST, [good])).toBe("allowed");
  }
  nowMs = NOW + HOUR_MS;
  expect(await gate.check(GATE, HOST, [good])).toBe("unknown");
});

test("lists are those of the request, not of the sign-in", async () => {
  const good = await pass();
  expect(await gate.check(GATE, HOST, [good])).toBe("allowed");
  const without = { ...GATE, emails: ["bob@example.com"] };
  expect(await gate.check(without, HOST, [good])).toEqual({ denied: "ann@example.com" });
});

test("a pass of another tunnel or host is none, also once it was found good at home", async () => {
  const good = await pass();
  expect(await gate.check(GATE, HOST, [good])).toBe("allowed");
  const other = { ...GATE, tunnelId: "00000000-0000-4000-8000-00000000000b" };
  expect(await gate.check(other, HOST, [good])).toBe("unknown");
  expect(await gate.check(GATE, "other.localhost", [good])).toBe("unknown");
});

describe("a pass is none", () => {
  test.each<[string, Changes]>([
    ["of another type", { header: { typ: "at+jwt" } }],
    ["without a type", { header: { typ: undefined } }],
    ["that never ends", { claims: { exp: undefined } }],
    ["that begins later", { claims: { nbf: NOW / 1000 + 60 } }],
    ["for no host", { claims: { aud: undefined } }],
    ["for no tunnel", { claims: { tunnel: undefined } }],
    ["of nobody", { claims: { email: undefined } }],
    ["that brings its own key", { header: { jwk: {}, jku: "http://evil.test", kid: "other" } }],
  ])("%s", async (_, changes) => {
    expect(await gate.check(GATE, HOST, [await pass(changes)])).toBe("unknown");
  });

  test("signed by somebody else, with a MAC, or not at all", async () => {
    const stranger = (await generateKeyPair("ES256")).privateKey;
    const mac = new TextEncoder().encode(JSON.stringify(publicJwk));
    const good = await pass();
    const [, payload = "", signature = ""] = good.split(".");
    const none = btoa(JSON.stringify({ alg: "none", typ: PASS_TYPE })).replace(/=+$/, "");
    const forged = [
      await pass({ key: stranger }),
      await pass({ key: mac, header: { alg: "HS256" } }),
      ...[`${none}.${payload}.`, `${none}.${payload}.${signature}`, `.${payload}.${signature}`],
      ...["", ".", "..", "a.b.c", good.slice(0, -4), `${good}.x`, "x".repeat(100_000)],
      "A".repeat(VISITOR_PASS_MAX_CHARS),
    ];
    for (const one of forged) expect(await gate.check(GATE, HOST, [one])).toBe("unknown");
    expect(await gate.check(GATE, HOST, [...forged, good])).toBe("allowed");
  });
});

test("keys that can't be had are no reason to let anybody in", async () => {
  isDown = true;
  expect(await gate.check(GATE, HOST, [await pass()])).toHaveProperty("keysDownForMs");
});

describe("who is on a list", () => {
  const emails = ["ann@example.com"];
  test.each([
    [{ domains: [], emails: [] }, "anybody@any.test", true],
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
  ])("%j: %s, %s", (list, email, isOn) => {
    expect(isOnList(list, email)).toBe(isOn);
  });
});

describe("a ticket", () => {
  const settings = { ENCRYPTION_KEY: btoa("k".repeat(32)), TOKEN_SIGNING_KEY: "not used" };
  const config = configOf({ ...settings, JWT_PRIVATE_KEY: "not used" });
  const place = { tunnelId: TUNNEL, host: HOST };
  const visit = { ...place, email: "ann@example.com", target: "/a" };

  test("is good for a minute, for its tunnel on its host", async () => {
    const sealed = await sealTicket(config, visit, NOW);
    expect(await openTicket(config, sealed, place, NOW + 59_999)).toMatchObject(visit);
    expect(await openTicket(config, sealed, place, NOW + 60_000)).toBeNull();
    const tunnelId = "00000000-0000-4000-8000-00000000000b";
    expect(await openTicket(config, sealed, { ...place, tunnelId }, NOW)).toBeNull();
    expect(await openTicket(config, sealed, { ...place, host: "b.localhost" }, NOW)).toBeNull();
  });

  test("says nothing of who it is for, and is none when it was changed", async () => {
    const sealed = await sealTicket(config, visit, NOW);
    expect(atob(sealed.split(".").at(-1)!.replaceAll("-", "+").replaceAll("_", "/"))).not.toContain(
      "ann",
    );
    for (const changed of ["", "v1...", `${sealed.slice(0, -2)}AA`, await sha256Hex(sealed)]) {
      expect(await openTicket(config, changed, place, NOW)).toBeNull();
    }
  });

  test("becomes a pass that the gate takes", async () => {
    const { d } = await exportJWK(signing.privateKey);
    const JWT_PRIVATE_KEY = JSON.stringify({ ...publicJwk, d });
    const signed = await signPass(configOf({ ...settings, JWT_PRIVATE_KEY }), visit);
    nowMs = Date.now();
    expect(await gate.check(GATE, HOST, [signed])).toBe("allowed");
  });
});
