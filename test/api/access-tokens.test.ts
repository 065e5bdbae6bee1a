import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { exportSPKI, importJWK, SignJWT, type CryptoKey, type JWK } from "jose";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fromBase64, toBase64Url, utf8 } from "../../workers/identity/encoding.ts";
import { callerOf, mintToken, startApi, type Person, type TestApi } from "../harness/api.ts";

let api: TestApi;
let owner: Person;
let jwk: JWK & { kid: string };
let key: CryptoKey;
let claims: Record<string, unknown>;

beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  const secrets = await readFile(join(api.server.dataDir, "secrets.json"), "utf8");
  const { JWT_PRIVATE_KEY } = JSON.parse(secrets) as { JWT_PRIVATE_KEY: string | object };
  jwk = (
    typeof JWT_PRIVATE_KEY === "string" ? JSON.parse(JWT_PRIVATE_KEY) : JWT_PRIVATE_KEY
  ) as typeof jwk;
  key = (await importJWK(jwk, "ES256")) as CryptoKey;
  claims = claimsOf(owner);
});
afterAll(() => api.stop());

const HEADER = { alg: "ES256", typ: "at+jwt" };
const encode = (part: object) => toBase64Url(utf8(JSON.stringify(part)));
const claimsOf = ({ accessToken }: Person) =>
  JSON.parse(new TextDecoder().decode(fromBase64(accessToken.split(".")[1]!)!)) as Record<
    string,
    unknown
  >;
const signed = (changes: object, header: object = {}, by = key) =>
  new SignJWT({ ...claims, ...changes })
    .setProtectedHeader({ ...HEADER, kid: jwk.kid, ...header })
    .sign(by);

async function statusWith(token: string): Promise<number> {
  const caller = callerOf(api.server, { authorization: `Bearer ${token}` });
  return (await caller.get("/auth/me")).status;
}

test("what the tests sign with is the service's own key", async () => {
  expect(await statusWith(await signed({}))).toBe(200);
});

test("the key set has the public half of it, and nothing of the private one", async () => {
  const { body } = await api.stranger.get<{ keys: JWK[] }>("/.well-known/jwks.json");
  expect(body.keys).toEqual([
    { kty: "EC", crv: "P-256", x: jwk.x, y: jwk.y, kid: jwk.kid, use: "sig", alg: "ES256" },
  ]);
});

test.each(["none", "None", "nOnE"])(
  "alg %s is refused, with and without a signature",
  async (alg) => {
    const [, , signature] = owner.accessToken.split(".");
    const unsigned = `${encode({ alg, typ: "at+jwt", kid: jwk.kid })}.${encode(claims)}`;
    expect(await statusWith(`${unsigned}.`)).toBe(401);
    expect(await statusWith(`${unsigned}.${signature}`)).toBe(401);
  },
);

test("HS256 keyed with the public key is refused", async () => {
  const { kty, crv, x, y } = jwk;
  const publicJwk: JWK = { kty: kty!, crv: crv!, x: x!, y: y! };
  const spki = await exportSPKI((await importJWK(publicJwk, "ES256")) as CryptoKey);
  const unsigned = `${encode({ ...HEADER, alg: "HS256", kid: jwk.kid })}.${encode(claims)}`;
  for (const secret of [spki, JSON.stringify(publicJwk), jwk.x!]) {
    const mac = createHmac("sha256", secret).update(unsigned).digest("base64url");
    expect(await statusWith(`${unsigned}.${mac}`)).toBe(401);
  }
});

test("a key that the token brings along is not used", async () => {
  const other = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const brought = other.publicKey.export({ format: "jwk" });
  for (const header of [
    { jwk: brought },
    { jku: "https://evil.test/jwks.json" },
    { x5u: "https://evil.test/cert.pem" },
  ]) {
    const unsigned = `${encode({ ...HEADER, kid: jwk.kid, ...header })}.${encode(claims)}`;
    const signature = sign("sha256", utf8(unsigned), {
      key: other.privateKey,
      dsaEncoding: "ieee-p1363",
    });
    expect(await statusWith(`${unsigned}.${toBase64Url(signature)}`)).toBe(401);
  }
});

test.each([
  "unknown",
  "",
  "../../etc/passwd",
  "' or '1'='1",
  "https://evil.test/key",
  "k".repeat(10_000),
])("the key id %.40j names no key", async (kid) => {
  expect([400, 401, 431]).toContain(await statusWith(await signed({}, { kid })));
});

const now = () => Math.floor(Date.now() / 1000);
test.each<[string, () => object]>([
  ["has expired", () => ({ exp: now() - 1 })],
  ["never expires", () => ({ exp: undefined })],
  ["expires at a text", () => ({ exp: String(now() + 900) })],
  ["expires before 1970", () => ({ exp: -1 })],
  ["is of no time", () => ({ iat: undefined })],
  ["is not good yet", () => ({ nbf: now() + 60 })],
  ["is for another audience", () => ({ aud: "somebody-else" })],
  ["is for nobody", () => ({ aud: undefined })],
  ["is of another issuer", () => ({ iss: "https://evil.test" })],
  ["is of no issuer", () => ({ iss: undefined })],
  ["names no session", () => ({ sid: undefined })],
  ["names a session that never was", () => ({ sid: crypto.randomUUID() })],
  ["names another user", () => ({ sub: crypto.randomUUID() })],
  ["names an organization of others", () => ({ org: crypto.randomUUID() })],
  ["names things by SQL", () => ({ sid: "' or true --" })],
])("a well signed token is refused when it %s", async (_, changes) => {
  expect(await statusWith(await signed(changes()))).toBe(401);
});

test("a role in the token grants nothing: the row's counts", async () => {
  const viewer = await api.colleague(owner, "viewer");
  const promoted = await new SignJWT({ ...claimsOf(viewer), role: "owner" })
    .setProtectedHeader({ ...HEADER, kid: jwk.kid })
    .sign(key);
  const caller = callerOf(api.server, { authorization: `Bearer ${promoted}` });
  expect((await caller.post("/tunnels", { localPort: 1 })).status).toBe(403);
});

test.each([
  ["another type of token", { typ: "JWT" }],
  ["no type", { typ: undefined }],
  ["a critical extension that nobody knows", { crit: ["exp2"], exp2: 1 }],
])("%s is refused", async (_, header) => {
  const protectedHeader = { ...HEADER, kid: jwk.kid, ...header };
  const unsigned = `${encode(protectedHeader)}.${encode(claims)}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = new Uint8Array(await crypto.subtle.sign(algorithm, key, utf8(unsigned)));
  expect(await statusWith(`${unsigned}.${toBase64Url(signature)}`)).toBe(401);
});

test("a token cut, padded or with another letter is refused", async () => {
  const [header, payload, signature] = owner.accessToken.split(".") as [string, string, string];
  const changed = signature.startsWith("A") ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
  for (const token of [
    `${header}.${payload}.`,
    `${header}.${payload}`,
    `${header}.${payload}.${changed}`,
    `${header}.${payload}.${signature}.${signature}`,
    `.${payload}.${signature}`,
    "...",
  ]) {
    expect(await statusWith(token)).toBe(401);
  }
});

test("other credentials of ours are no access tokens", async () => {
  const { wireBytes } = await mintToken(owner);
  expect(await statusWith(wireBytes)).toBe(401);
  expect(await statusWith(owner.cookie.slice("qnt_refresh=".length))).toBe(401);
});
