import { exportJWK, generateKeyPair, SignJWT, type JWK, type JWTPayload } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { discoverKeys, IssuerKeys, ISSUER_ASK_AGAIN_MS } from "../../../access/issuer-keys.ts";
import {
  TokenGate,
  VISITOR_TOKEN_LEEWAY_SECONDS,
  VISITOR_TOKEN_MAX_CHARS,
} from "../../../access/tokens.ts";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "../../../access/limits.ts";
import type { JwtValidation } from "../../../protocol/schemas/access/policies.ts";

const ISSUER = "https://issuer.example";
const OTHER = "https://other.example/tenant";
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

/** What issuers publish, how often they were asked, and whether they answer at all. */
let published: Map<string, JWK[]>;
let asked: string[];
let isDown: boolean;
let nowMs: number;
let gate: TokenGate;

beforeAll(async () => {
  [first, second, foreign] = await Promise.all([newPair("one"), newPair("two"), newPair("one")]);
});
beforeEach(() => {
  published = new Map([
    [ISSUER, [first.jwk]],
    [OTHER, [foreign.jwk]],
    ["", [first.jwk]],
  ]);
  asked = [];
  isDown = false;
  nowMs = 1_800_000_000_000;
  const load = (issuer: string) => {
    asked.push(issuer);
    if (isDown) return Promise.reject(new Error("down"));
    return Promise.resolve({ keys: published.get(issuer) ?? [] });
  };
  gate = new TokenGate({ keys: new IssuerKeys(load, () => nowMs), now: () => nowMs });
});

const seconds = () => nowMs / 1000;

interface Odd {
  pair?: Pair;
  header?: Record<string, unknown>;
}

/** A good token, but for what is said of it. `undefined` leaves a claim out. */
function token(claims: JWTPayload = {}, { pair = first, header = {} }: Odd = {}): Promise<string> {
  const payload = { iss: ISSUER, sub: "ann", exp: seconds() + 600, ...claims };
  return new SignJWT(payload)
    .setProtectedHeader({ alg: "ES256", kid: pair.jwk.kid!, ...header })
    .sign(pair.privateKey);
}

const check = (jwt: string, rule = RULE) => gate.check(rule, `Bearer ${jwt}`);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Signed as it is, without a library that knows better. */
async function signed(header: object, payload: string, pair = first): Promise<string> {
  const input = `${encode(header)}.${Buffer.from(payload).toString("base64url")}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = await crypto.subtle.sign(algorithm, pair.privateKey, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString("base64url")}`;
}

describe("a good token", () => {
  test("passes, and its keys are asked for once", async () => {
    for (let n = 0; n < 3; n++) expect(await check(await token({ jti: String(n) }))).toBe("good");
    expect(asked).toEqual([ISSUER]);
  });

  test.each(["RS256", "PS256", "ES384", "EdDSA"])("may be signed with %s", async (alg) => {
    const pair = await newPair("k", alg);
    published.set(ISSUER, [pair.jwk]);
    expect(await check(await token({}, { pair, header: { alg } }))).toBe("good");
  });

  test("needs no key id, where one of its issuer's keys fits", async () => {
    published.set(ISSUER, [second.jwk, first.jwk]);
    expect(await check(await token({}, { header: { kid: undefined } }))).toBe("good");
    const bad = await token({}, { pair: foreign, header: { kid: undefined } });
    expect(await check(bad)).toBe("bad");
  });

  test("is good for 30 seconds longer than it says, for clocks that differ, and as much earlier", async () => {
    const leeway = VISITOR_TOKEN_LEEWAY_SECONDS;
    expect(await check(await token({ exp: seconds() - leeway + 1 }))).toBe("good");
    expect(await check(await token({ exp: seconds() - leeway - 1 }))).toBe("bad");
    expect(await check(await token({ nbf: seconds() + leeway - 1 }))).toBe("good");
    expect(await check(await token({ nbf: seconds() + leeway + 1 }))).toBe("bad");
  });

  test("is remembered until it ends, and no longer than its issuer's keys are believed", async () => {
    const short = await token({ exp: seconds() + 10 });
    const long = await token({ exp: seconds() + 3600 });
    expect([await check(short), await check(long)]).toEqual(["good", "good"]);
    nowMs += 11_000 + VISITOR_TOKEN_LEEWAY_SECONDS * 1000;
    expect([await check(short), await check(long)]).toEqual(["bad", "good"]);
    published.set(ISSUER, [second.jwk]);
    nowMs += ISSUER_KEYS_MAX_MS;
    expect(await check(long)).toBe("bad");
  });

  test("for one rule is none for another", async () => {
    const jwt = await token({ aud: "shop" });
    expect(await check(jwt)).toBe("good");
    expect(await check(jwt, { ...RULE, allowed_audiences: ["desk"] })).toBe("bad");
    expect(await check(jwt, { ...RULE, allowed_audiences: ["desk", "shop"] })).toBe("good");
    expect(await check(jwt, { ...RULE, allowed_issuers: [OTHER] })).toBe("bad");
    expect(
      await check(await token({ aud: ["a", "shop"] }), { ...RULE, allowed_audiences: ["shop"] }),
    ).toBe("good");
    expect(await check(await token(), { ...RULE, allowed_audiences: ["shop"] })).toBe("bad");
  });
});

describe("no token passes", () => {
  test.each([
    ["without an end", { exp: undefined }],
    ["with an end in words", { exp: "9999999999" as unknown as number }],
    ["that ended", { exp: 1 }],
    ["with an end before all time", { exp: -1 }],
    ["of another issuer", { iss: "https://evil.example" }],
    ["of an issuer with a slash more", { iss: `${ISSUER}/` }],
    ["of none", { iss: undefined }],
    ["of an issuer that is no text", { iss: [ISSUER] as unknown as string }],
  ])("%s", async (_, claims) => {
    expect(await check(await token(claims))).toBe("bad");
  });

  test("with an end beyond all numbers", async () => {
    const payload = `{"iss":"${ISSUER}","exp":1e400}`;
    expect(await check(await signed({ alg: "ES256", kid: "one" }, payload))).toBe("bad");
  });

  test.each([
    ["none", { alg: "none" }],
    ["None", { alg: "None" }],
    ["nOnE", { alg: "nOnE" }],
    ["HS256, of whoever has the public key", { alg: "HS256", kid: "one" }],
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
      expect(await check(`${input}.${signature}`)).toBe("bad");
    }
  });

  test("signed by another key of the same name, or another issuer's", async () => {
    expect(await check(await token({}, { pair: foreign }))).toBe("bad");
    const both = { ...RULE, allowed_issuers: [ISSUER, OTHER] };
    expect(await check(await token({}, { pair: foreign }), both)).toBe("bad");
    expect(await check(await token({ iss: OTHER }, { pair: foreign }), both)).toBe("good");
  });

  test("that brings its own key", async () => {
    const { jwk } = foreign;
    for (const header of [
      { jwk },
      { jku: "https://evil.example/jwks" },
      { x5u: "https://evil.example" },
    ]) {
      expect(await check(await token({}, { pair: foreign, header }))).toBe("bad");
    }
    expect(new Set(asked)).toEqual(new Set([ISSUER]));
  });

  test("with a demand that we don't understand", async () => {
    const payload = JSON.stringify({ iss: ISSUER, exp: seconds() + 600 });
    const header = { alg: "ES256", kid: "one", crit: ["future"], future: true };
    expect(await check(await signed(header, payload))).toBe("bad");
  });

  test.each([
    ["", "missing"],
    ["Basic YTpi", "missing"],
    ["Bearer", "missing"],
    ["Bearer a, Bearer b", "missing"],
    ["Bearer a", "bad"],
    ["Bearer a.b.c", "bad"],
    ["Bearer ..", "bad"],
    [`Bearer ${"a".repeat(VISITOR_TOKEN_MAX_CHARS + 1)}`, "bad"],
  ])("that is none: %.30s", async (line, verdict) => {
    expect(await gate.check(RULE, line)).toBe(verdict);
    expect(await gate.check(RULE, null)).toBe("missing");
  });

  test.each(["../../etc/passwd", "' or 1=1 --", "https://evil.example", "k".repeat(5_000)])(
    "with the key id %.30s",
    async (kid) => {
      expect(await check(await token({}, { header: { kid } }))).toBe("bad");
    },
  );
});

describe("where no issuer is named, a token of this service", () => {
  const own: JwtValidation = { kind: "jwt_validation" };

  test("passes, of the type that it is given to people with", async () => {
    const typ = "at+jwt";
    expect(await check(await token({ iss: "http://localhost" }, { header: { typ } }), own)).toBe(
      "good",
    );
    expect(await check(await token({}, { header: { typ: "ticket+jwt" } }), own)).toBe("bad");
    expect(await check(await token(), own)).toBe("bad");
    expect(await check(await token({}, { pair: foreign, header: { typ } }), own)).toBe("bad");
    expect(new Set(asked)).toEqual(new Set([""]));
  });
});

describe("an issuer that changes its keys", () => {
  test("is asked again for a key that is new, once a minute whatever is made up", async () => {
    expect(await check(await token())).toBe("good");
    published.set(ISSUER, [second.jwk]);
    nowMs += ISSUER_ASK_AGAIN_MS;
    expect(await check(await token({}, { pair: second }))).toBe("good");
    expect(asked).toHaveLength(2);
    const madeUp = await Promise.all(
      Array.from({ length: 20 }, (_, n) => token({}, { header: { kid: `made-up-${n}` } })),
    );
    expect(await Promise.all(madeUp.map((jwt) => check(jwt)))).toEqual(Array(20).fill("bad"));
    expect(asked).toHaveLength(2);
    nowMs += ISSUER_ASK_AGAIN_MS;
    await Promise.all(madeUp.map((jwt) => check(jwt)));
    expect(asked).toHaveLength(3);
  });

  test("is asked once by many who come at once", async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, n) => token({ jti: `${n}` })));
    expect(await Promise.all(tokens.map((jwt) => check(jwt)))).toEqual(Array(20).fill("good"));
    expect(asked).toHaveLength(1);
  });

  test("is believed for a while, then asked again", async () => {
    await check(await token());
    published.set(ISSUER, [second.jwk]);
    nowMs += ISSUER_KEYS_MAX_MS;
    expect(await check(await token())).toBe("bad");
  });
});

describe("an issuer that is down", () => {
  const unavailable = { issuerDownForMs: ISSUER_DOWN_MS };

  test("lets nobody in, and is left alone for a moment", async () => {
    isDown = true;
    expect(await check(await token())).toEqual(unavailable);
    expect(await check(await token({ jti: "2" }))).toEqual(unavailable);
    expect(asked).toHaveLength(1);
    isDown = false;
    nowMs += ISSUER_DOWN_MS;
    expect(await check(await token())).toBe("good");
  });

  test("keeps those out whose key we don't know, and no others", async () => {
    await check(await token());
    isDown = true;
    nowMs += ISSUER_ASK_AGAIN_MS;
    expect(await check(await token({}, { pair: second }))).toEqual(unavailable);
    expect(await check(await token({ jti: "2" }))).toBe("good");
  });
});

describe("a discovery document", () => {
  const jwks = { keys: [{ kty: "EC", kid: "one" }] };
  const pages =
    (document: unknown, keys: unknown = jwks) =>
    (url: string) =>
      Promise.resolve(url.endsWith("/.well-known/openid-configuration") ? document : keys);

  test("leads to the keys", async () => {
    const document = { issuer: OTHER, jwks_uri: "https://cdn.example/jwks" };
    const seen: string[] = [];
    const fetched = (url: string) => (seen.push(url), pages(document)(url));
    expect(await discoverKeys(OTHER, fetched)).toEqual(jwks);
    expect(seen).toEqual([`${OTHER}/.well-known/openid-configuration`, "https://cdn.example/jwks"]);
  });

  test.each([
    ["of another issuer", { issuer: ISSUER, jwks_uri: "https://cdn.example/jwks" }, jwks],
    ["without keys", { issuer: OTHER }, jwks],
    ["whose keys are no URL of the web", { issuer: OTHER, jwks_uri: "file:///etc/passwd" }, jwks],
    ["that is none", "hello", jwks],
    ["whose keys are none", { issuer: OTHER, jwks_uri: "https://cdn.example/jwks" }, { keys: "x" }],
  ])("%s is refused", async (_, document, keys) => {
    await expect(discoverKeys(OTHER, pages(document, keys))).rejects.toThrow();
  });
});
