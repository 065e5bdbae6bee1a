import { exportJWK, generateKeyPair, SignJWT, type JWK, type JWTPayload } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  IssuerKeys,
  ISSUER_REFETCH_MIN_MS,
} from "../../../../access/authenticators/issuer-keys.ts";
import {
  CANDIDATE_KEYS_MAX,
  JwtAuthenticator,
  VISITOR_TOKEN_LEEWAY_SECONDS,
  VISITOR_TOKEN_MAX_CHARS,
} from "../../../../access/authenticators/tokens.ts";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "../../../../access/authenticators/limits.ts";
import { HOUR_MS } from "../../../../shared/time.ts";
import type { JwtValidation } from "../../../../protocol/schemas/access/policies.ts";

const ISSUER = "https://issuer.example";
const OTHER = "https://other.example/tenant";
const API = "https://api.tunnels.example";
const RECIPIENT = { tunnelId: crypto.randomUUID(), host: "shop.tunnels.example" };
const RULE: JwtValidation = { kind: "jwt_validation", allowed_issuers: [ISSUER] };

interface Pair {
  jwk: JWK;
  privateKey: CryptoKey;
}
let first: Pair;
let second: Pair;
let foreign: Pair;

async function newPair(kid: string, alg = "ES256"): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" }, privateKey };
}

/** The keys that issuers publish, how often they were requested, and whether issuers respond. */
let published: Map<string, JWK[]>;
let requestedIssuers: string[];
let isDown: boolean;
let nowMs: number;
let gate: JwtAuthenticator;

beforeAll(async () => {
  [first, second, foreign] = await Promise.all([newPair("one"), newPair("two"), newPair("one")]);
});
beforeEach(() => {
  published = new Map([
    [ISSUER, [first.jwk]],
    [OTHER, [foreign.jwk]],
    ["", [first.jwk]],
  ]);
  requestedIssuers = [];
  isDown = false;
  nowMs = 1_800_000_000_000;
  const load = (issuer: string) => {
    requestedIssuers.push(issuer);
    if (isDown) return Promise.reject(new Error("down"));
    return Promise.resolve({ keys: published.get(issuer) ?? [] });
  };
  const keys = new IssuerKeys(load, () => nowMs);
  gate = new JwtAuthenticator({ keys, now: () => nowMs, apiOrigin: API });
});

const seconds = () => nowMs / 1000;

interface TokenChanges {
  pair?: Pair;
  header?: Record<string, unknown>;
}

/** A valid token, except for the given changes. `undefined` leaves a claim out. */
function token(
  claims: JWTPayload = {},
  { pair = first, header = {} }: TokenChanges = {},
): Promise<string> {
  const payload = { iss: ISSUER, sub: "ann", exp: seconds() + 600, ...claims };
  return new SignJWT(payload)
    .setProtectedHeader({ alg: "ES256", kid: pair.jwk.kid!, ...header })
    .sign(pair.privateKey);
}

const check = (jwt: string, rule = RULE, recipient = RECIPIENT) =>
  gate.check(rule, `Bearer ${jwt}`, recipient);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Signed without a library, which would refuse to. */
async function signed(header: object, payload: string, pair = first): Promise<string> {
  const input = `${encode(header)}.${Buffer.from(payload).toString("base64url")}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = await crypto.subtle.sign(algorithm, pair.privateKey, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString("base64url")}`;
}

describe("a valid token", () => {
  test("is accepted, and the keys are fetched once", async () => {
    for (let n = 0; n < 3; n++) expect(await check(await token({ jti: String(n) }))).toBe("valid");
    expect(requestedIssuers).toEqual([ISSUER]);
  });

  test.each(["RS256", "PS256", "ES384", "EdDSA"])("may be signed with %s", async (alg) => {
    const pair = await newPair("k", alg);
    published.set(ISSUER, [pair.jwk]);
    expect(await check(await token({}, { pair, header: { alg } }))).toBe("valid");
  });

  test("needs no key id if one of its issuer's keys verifies it", async () => {
    published.set(ISSUER, [second.jwk, first.jwk]);
    expect(await check(await token({}, { header: { kid: undefined } }))).toBe("valid");
    const bad = await token({}, { pair: foreign, header: { kid: undefined } });
    expect(await check(bad)).toBe("invalid");
  });

  test("without a key id is verified with the first few of its issuer's keys only", async () => {
    const others = await Promise.all(
      Array.from({ length: CANDIDATE_KEYS_MAX }, (_, n) => newPair(`other-${n}`)),
    );
    const jwks = others.map(({ jwk }) => jwk);
    const jwt = await token({}, { header: { kid: undefined } });
    published.set(ISSUER, [...jwks, first.jwk]);
    expect(await check(jwt)).toBe("invalid");
    nowMs += ISSUER_KEYS_MAX_MS;
    published.set(ISSUER, [...jwks.slice(1), first.jwk]);
    expect(await check(await token({}, { header: { kid: undefined } }))).toBe("valid");
  });

  test("is accepted 30 seconds before its start and after its expiry, because clocks differ", async () => {
    const leeway = 30;
    expect(await check(await token({ exp: seconds() - leeway + 1 }))).toBe("valid");
    expect(await check(await token({ exp: seconds() - leeway - 1 }))).toBe("invalid");
    expect(await check(await token({ nbf: seconds() + leeway - 1 }))).toBe("valid");
    expect(await check(await token({ nbf: seconds() + leeway + 1 }))).toBe("invalid");
  });

  test("may have 16 KiB, and is not verified when it is longer", async () => {
    expect(await check(await token({ padding: "x".repeat(11 * 1024) }))).toBe("valid");
    expect(await check(await token({ padding: "x".repeat(16 * 1024) }))).toBe("invalid");
  });

  test("is cached until it expires, and no longer than its issuer's keys", async () => {
    const short = await token({ exp: seconds() + 10 });
    const long = await token({ exp: seconds() + 3600 });
    expect([await check(short), await check(long)]).toEqual(["valid", "valid"]);
    nowMs += 11_000 + VISITOR_TOKEN_LEEWAY_SECONDS * 1000;
    expect([await check(short), await check(long)]).toEqual(["invalid", "valid"]);
    published.set(ISSUER, [second.jwk]);
    nowMs += ISSUER_KEYS_MAX_MS;
    expect(await check(long)).toBe("invalid");
  });

  test("for one rule is not valid for another", async () => {
    const jwt = await token({ aud: "shop" });
    expect(await check(jwt)).toBe("valid");
    expect(await check(jwt, { ...RULE, allowed_audiences: ["desk"] })).toBe("invalid");
    expect(await check(jwt, { ...RULE, allowed_audiences: ["desk", "shop"] })).toBe("valid");
    expect(await check(jwt, { ...RULE, allowed_issuers: [OTHER] })).toBe("invalid");
    expect(
      await check(await token({ aud: ["a", "shop"] }), { ...RULE, allowed_audiences: ["shop"] }),
    ).toBe("valid");
    expect(await check(await token(), { ...RULE, allowed_audiences: ["shop"] })).toBe("invalid");
  });
});

describe("no token is accepted", () => {
  test.each([
    ["without an end", { exp: undefined }],
    ["with an expiry that is a string", { exp: "9999999999" as unknown as number }],
    ["that ended", { exp: 1 }],
    ["with an end before all time", { exp: -1 }],
    ["of another issuer", { iss: "https://evil.example" }],
    ["of an issuer with a slash more", { iss: `${ISSUER}/` }],
    ["of none", { iss: undefined }],
    ["of an issuer that is no text", { iss: [ISSUER] as unknown as string }],
  ])("%s", async (_, claims) => {
    expect(await check(await token(claims))).toBe("invalid");
  });

  test("with an expiry that is not a finite number", async () => {
    const payload = `{"iss":"${ISSUER}","exp":1e400}`;
    expect(await check(await signed({ alg: "ES256", kid: "one" }, payload))).toBe("invalid");
  });

  test.each([
    ["none", { alg: "none" }],
    ["None", { alg: "None" }],
    ["nOnE", { alg: "nOnE" }],
    ["HS256, keyed with the public key", { alg: "HS256", kid: "one" }],
  ])("with the algorithm %s", async (_, header) => {
    const input = `${encode(header)}.${encode({ iss: ISSUER, exp: seconds() + 600 })}`;
    const secret = Buffer.from(JSON.stringify(first.jwk));
    const key = await crypto.subtle.importKey(
      "raw",
      secret,
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign"],
    );
    const mac = Buffer.from(await crypto.subtle.sign("HMAC", key, Buffer.from(input)));
    for (const signature of ["", mac.toString("base64url")]) {
      expect(await check(`${input}.${signature}`)).toBe("invalid");
    }
  });

  test("signed by another key with the same id, or by another issuer's key", async () => {
    expect(await check(await token({}, { pair: foreign }))).toBe("invalid");
    const both = { ...RULE, allowed_issuers: [ISSUER, OTHER] };
    expect(await check(await token({}, { pair: foreign }), both)).toBe("invalid");
    expect(await check(await token({ iss: OTHER }, { pair: foreign }), both)).toBe("valid");
  });

  test("that contains its own key", async () => {
    const { jwk } = foreign;
    for (const header of [
      { jwk },
      { jku: "https://evil.example/jwks" },
      { x5u: "https://evil.example" },
    ]) {
      expect(await check(await token({}, { pair: foreign, header }))).toBe("invalid");
    }
    expect(new Set(requestedIssuers)).toEqual(new Set([ISSUER]));
  });

  test("with an unknown critical header", async () => {
    const payload = JSON.stringify({ iss: ISSUER, exp: seconds() + 600 });
    const header = { alg: "ES256", kid: "one", crit: ["future"], future: true };
    expect(await check(await signed(header, payload))).toBe("invalid");
  });

  test.each([
    ["", "missing"],
    ["Basic YTpi", "missing"],
    ["Bearer", "missing"],
    ["Bearer a, Bearer b", "missing"],
    ["Bearer a", "invalid"],
    ["Bearer a.b.c", "invalid"],
    ["Bearer ..", "invalid"],
    [`Bearer ${"a".repeat(VISITOR_TOKEN_MAX_CHARS + 1)}`, "invalid"],
  ])("from a malformed header: %.30s", async (line, verdict) => {
    expect(await gate.check(RULE, line, RECIPIENT)).toBe(verdict);
    expect(await gate.check(RULE, null, RECIPIENT)).toBe("missing");
  });

  test.each(["../../etc/passwd", "' or 1=1 --", "https://evil.example", "k".repeat(5_000)])(
    "with the key id %.30s",
    async (kid) => {
      expect(await check(await token({}, { header: { kid } }))).toBe("invalid");
    },
  );
});

describe("a token of this service, where the rule names no issuer,", () => {
  const own: JwtValidation = { kind: "jwt_validation" };
  const { tunnelId: tunnel, host: aud } = RECIPIENT;
  const mint = (claims: JWTPayload = {}, header = {}, pair = first) => {
    const typ = "underpass-visitor-token+jwt";
    return token({ iss: API, aud, tunnel, ...claims }, { pair, header: { typ, ...header } });
  };

  test("is accepted if it was minted for this tunnel", async () => {
    expect(await check(await mint(), own)).toBe("valid");
    expect(await check(await mint(), { ...own, allowed_audiences: ["x", aud] })).toBe("valid");
    expect(new Set(requestedIssuers)).toEqual(new Set([""]));
  });

  test.each([
    ["another tunnel", { tunnel: crypto.randomUUID() }, {}],
    ["no tunnel", { tunnel: undefined }, {}],
    ["another host", { aud: "desk.tunnels.example" }, {}],
    ["no host", { aud: undefined }, {}],
    ["another service", { iss: "https://api.other.example" }, {}],
    ["another purpose: a visitor's pass", {}, { typ: "underpass-visitor+jwt" }],
    ["another purpose: a relay ticket", {}, { typ: "ticket+jwt" }],
    ["no purpose", {}, { typ: undefined }],
  ])("is not accepted if it was signed for %s", async (_, claims, header) => {
    expect(await check(await mint(claims, header), own)).toBe("invalid");
  });

  test("is not accepted at another tunnel after it was accepted at its own", async () => {
    const jwt = await mint();
    expect(await check(jwt, own)).toBe("valid");
    const others = [
      { ...RECIPIENT, tunnelId: crypto.randomUUID() },
      { ...RECIPIENT, host: "desk.tunnels.example" },
    ];
    for (const other of others) expect(await check(jwt, own, other)).toBe("invalid");
    expect(await check(jwt, { ...own, allowed_audiences: ["x"] })).toBe("invalid");
    expect(await check(await mint({}, {}, foreign), own)).toBe("invalid");
  });
});

test("an access token of the API is accepted by no rule, whichever issuers it names", async () => {
  published.set(API, [first.jwk]);
  const claims = { iss: API, aud: "underpass", tunnel: RECIPIENT.tunnelId };
  const jwt = await token(claims, { header: { typ: "at+jwt" } });
  const rules: Partial<JwtValidation>[] = [
    {},
    { allowed_issuers: [API] },
    { allowed_issuers: [API], allowed_audiences: ["underpass"] },
    { allowed_audiences: ["underpass"] },
  ];
  for (const rule of rules) {
    expect(await check(jwt, { kind: "jwt_validation", ...rule })).toBe("invalid");
  }
  expect(requestedIssuers).toEqual([]);
});

test("a token has one spelling: padding, other alphabets and unused bits make it invalid", async () => {
  const jwt = await token();
  expect(await check(jwt)).toBe("valid");
  const [header = "", payload = "", signature = ""] = jwt.split(".");
  // 64 bytes leave two unused bits in the last character.
  const last = signature.at(-1)!;
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const twin = signature.slice(0, -1) + alphabet[alphabet.indexOf(last) + 1]!;
  expect(Buffer.from(twin, "base64url")).toEqual(Buffer.from(signature, "base64url"));
  const spellings = [
    `${header}.${payload}.${twin}`,
    `${header}.${payload}.${signature}==`,
    `${header}=.${payload}.${signature}`,
    `${header}.${payload}.${signature}\n`,
  ];
  for (const spelling of spellings) {
    expect([spelling, await gate.check(RULE, `Bearer ${spelling}`, RECIPIENT)]).not.toContain(
      "valid",
    );
  }
  let standard = jwt;
  for (let n = 0; !/[-_]/.test(standard); n++) standard = await token({ jti: `${n}???>>>` });
  expect(await check(standard)).toBe("valid");
  const translated = standard.replaceAll("-", "+").replaceAll("_", "/");
  expect(await check(translated)).toBe("invalid");
});

describe("an issuer that rotates its keys", () => {
  test("is requested again for an unknown key id, at most once a minute", async () => {
    expect(await check(await token())).toBe("valid");
    published.set(ISSUER, [second.jwk]);
    nowMs += ISSUER_REFETCH_MIN_MS;
    expect(await check(await token({}, { pair: second }))).toBe("valid");
    expect(requestedIssuers).toHaveLength(2);
    const madeUp = await Promise.all(
      Array.from({ length: 20 }, (_, n) => token({}, { header: { kid: `made-up-${n}` } })),
    );
    expect(await Promise.all(madeUp.map((jwt) => check(jwt)))).toEqual(Array(20).fill("invalid"));
    expect(requestedIssuers).toHaveLength(2);
    nowMs += ISSUER_REFETCH_MIN_MS;
    await Promise.all(madeUp.map((jwt) => check(jwt)));
    expect(requestedIssuers).toHaveLength(3);
  });

  test("is requested once by many concurrent requests", async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, n) => token({ jti: `${n}` })));
    expect(await Promise.all(tokens.map((jwt) => check(jwt)))).toEqual(Array(20).fill("valid"));
    expect(requestedIssuers).toHaveLength(1);
  });

  test("is cached for a while, then requested again", async () => {
    await check(await token());
    published.set(ISSUER, [second.jwk]);
    nowMs += ISSUER_KEYS_MAX_MS;
    expect(await check(await token())).toBe("invalid");
  });
});

describe("an issuer that is unavailable", () => {
  const unavailable = { issuerDownForMs: ISSUER_DOWN_MS };

  test("makes tokens unverifiable, and is not requested again for a short time", async () => {
    isDown = true;
    expect(await check(await token())).toEqual(unavailable);
    expect(await check(await token({ jti: "2" }))).toEqual(unavailable);
    expect(requestedIssuers).toHaveLength(1);
    isDown = false;
    nowMs += ISSUER_DOWN_MS;
    expect(await check(await token())).toBe("valid");
  });

  test("is requested again as soon when the clock is set back", async () => {
    isDown = true;
    await check(await token());
    isDown = false;
    nowMs -= HOUR_MS;
    expect(await check(await token())).toBe("valid");
  });

  test("affects only tokens with an unknown key id", async () => {
    await check(await token());
    isDown = true;
    nowMs += ISSUER_REFETCH_MIN_MS;
    expect(await check(await token({}, { pair: second }))).toEqual(unavailable);
    expect(await check(await token({ jti: "2" }))).toBe("valid");
  });
});
