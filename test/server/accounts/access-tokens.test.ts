import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { exportSPKI, importJWK, SignJWT, type CryptoKey, type JWK } from "jose";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import PostalMime from "postal-mime";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { MfaRequired } from "../../../protocol/schemas/accounts/accounts.ts";
import { fromBase64, toBase64Url, toUtf8 } from "../../../shared/bytes.ts";
import {
  createCaller,
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

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
  claims = readClaims(owner);
});
afterAll(() => api.stop());

const HEADER = { alg: "ES256", typ: "at+jwt" };
const encode = (part: object) => toBase64Url(toUtf8(JSON.stringify(part)));
const readClaims = ({ accessToken }: Person) =>
  JSON.parse(new TextDecoder().decode(fromBase64(accessToken.split(".")[1]!)!)) as Record<
    string,
    unknown
  >;
const signChanged = (changes: object, header: object = {}, by = key) =>
  new SignJWT({ ...claims, ...changes })
    .setProtectedHeader({ ...HEADER, kid: jwk.kid, ...header })
    .sign(by);

async function readStatusWith(token: string): Promise<number> {
  const caller = createCaller(api.server, { authorization: `Bearer ${token}` });
  return (await caller.get("/auth/me")).status;
}

test("the tests sign with the key of the service", async () => {
  expect(await readStatusWith(await signChanged({}))).toBe(200);
});

test("the key set contains only the public key", async () => {
  const { body } = await api.anonymous.get<{ keys: JWK[] }>("/.well-known/jwks.json");
  expect(body.keys).toEqual([
    { kty: "EC", crv: "P-256", x: jwk.x, y: jwk.y, kid: jwk.kid, use: "sig", alg: "ES256" },
  ]);
});

test.each(["none", "None", "nOnE"])(
  "alg %s is refused, with and without a signature",
  async (alg) => {
    const [, , signature] = owner.accessToken.split(".");
    const unsigned = `${encode({ alg, typ: "at+jwt", kid: jwk.kid })}.${encode(claims)}`;
    expect(await readStatusWith(`${unsigned}.`)).toBe(401);
    expect(await readStatusWith(`${unsigned}.${signature}`)).toBe(401);
  },
);

test("another spelling of the same token is refused", async () => {
  const token = owner.accessToken;
  expect(await readStatusWith(token)).toBe(200);
  const [header = "", payload = "", signature = ""] = token.split(".");
  // The last character of 64 bytes has two unused bits, so the next one decodes to the same bytes.
  const twin = signature.slice(0, -1) + String.fromCharCode(signature.charCodeAt(85) + 1);
  expect(Buffer.from(twin, "base64url")).toEqual(Buffer.from(signature, "base64url"));
  for (const other of [
    `${header}.${payload}.${twin}`,
    `${token}==`,
    `${header}=.${payload}.${signature}`,
    `${header}.${payload}=.${signature}`,
    `${token}.`,
  ]) {
    expect([other, await readStatusWith(other)]).toEqual([other, 401]);
  }
});

test("HS256 keyed with the public key is refused", async () => {
  const { kty, crv, x, y } = jwk;
  const publicJwk: JWK = { kty: kty!, crv: crv!, x: x!, y: y! };
  const spki = await exportSPKI((await importJWK(publicJwk, "ES256")) as CryptoKey);
  const unsigned = `${encode({ ...HEADER, alg: "HS256", kid: jwk.kid })}.${encode(claims)}`;
  const body = spki.replace(/-----.*-----|\n/g, "");
  const keySet = (await api.anonymous.get<{ keys: JWK[] }>("/.well-known/jwks.json")).body;
  for (const secret of [
    spki,
    spki.trim(),
    body,
    Buffer.from(body, "base64"),
    JSON.stringify(publicJwk),
    JSON.stringify(keySet.keys[0]),
    JSON.stringify(keySet),
    jwk.x!,
    Buffer.from(jwk.x!, "base64url"),
    "",
  ]) {
    const mac = createHmac("sha256", secret).update(unsigned).digest("base64url");
    expect(await readStatusWith(`${unsigned}.${mac}`)).toBe(401);
  }
});

test("a key in the header of the token is not used", async () => {
  const other = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const embedded = other.publicKey.export({ format: "jwk" });
  for (const header of [
    {},
    { jwk: embedded },
    { x5c: [other.publicKey.export({ format: "der", type: "spki" }).toString("base64")] },
    { jku: "https://evil.test/jwks.json" },
    { x5u: "https://evil.test/cert.pem" },
  ]) {
    const unsigned = `${encode({ ...HEADER, kid: jwk.kid, ...header })}.${encode(claims)}`;
    const signature = sign("sha256", toUtf8(unsigned), {
      key: other.privateKey,
      dsaEncoding: "ieee-p1363",
    });
    expect(await readStatusWith(`${unsigned}.${toBase64Url(signature)}`)).toBe(401);
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
  expect([400, 401, 431]).toContain(await readStatusWith(await signChanged({}, { kid })));
});

const now = () => Math.floor(Date.now() / 1000);
test.each<[string, () => object]>([
  ["has expired", () => ({ exp: now() - 1 })],
  ["never expires", () => ({ exp: undefined })],
  ["has an expiry that is a string", () => ({ exp: String(now() + 900) })],
  ["has an expiry that is a fraction", () => ({ exp: now() + 900.5 })],
  ["has an expiry of null", () => ({ exp: null })],
  ["has an expiry that is a list", () => ({ exp: [now() + 900] })],
  ["has an expiry before 1970", () => ({ exp: -1 })],
  ["has no time of issue", () => ({ iat: undefined })],
  ["is not valid yet", () => ({ nbf: now() + 60 })],
  ["is for another audience", () => ({ aud: "another-service" })],
  ["has no audience", () => ({ aud: undefined })],
  ["has another issuer", () => ({ iss: "https://evil.test" })],
  ["has no issuer", () => ({ iss: undefined })],
  ["names no session", () => ({ sid: undefined })],
  ["names a session that does not exist", () => ({ sid: crypto.randomUUID() })],
  ["names another user", () => ({ sub: crypto.randomUUID() })],
  ["names another organization", () => ({ org: crypto.randomUUID() })],
  ["has SQL for a session", () => ({ sid: "' or true --" })],
])("a correctly signed token is refused when it %s", async (_, changes) => {
  expect(await readStatusWith(await signChanged(changes()))).toBe(401);
});

/** Signs a payload as text, which may be one that no serializer writes. */
async function signText(payload: string): Promise<string> {
  const unsigned = `${encode({ ...HEADER, kid: jwk.kid })}.${toBase64Url(toUtf8(payload))}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = new Uint8Array(await crypto.subtle.sign(algorithm, key, toUtf8(unsigned)));
  return `${unsigned}.${toBase64Url(signature)}`;
}

test.each([
  [
    "with an expiry beyond the range of numbers",
    () => toText().replace(/"exp":\d+/, '"exp":1e400'),
  ],
  ["with two expiries", () => toText().replace(/}$/, `,"exp":${now() - 1}}`)],
  ["with two audiences", () => toText().replace(/}$/, ',"aud":"other"}')],
  ["with two sessions", () => toText().replace(/}$/, `,"sid":"${crypto.randomUUID()}"}`)],
  ["that is a list", () => `[${toText()}]`],
  ["that is truncated", () => toText().slice(0, -1)],
  ["that is empty", () => ""],
])("a correctly signed payload %s is refused", async (_, payload) => {
  expect(await readStatusWith(await signText(toText()))).toBe(200);
  expect(await readStatusWith(await signText(payload()))).toBe(401);
});
const toText = () => JSON.stringify(claims);

test("a correctly signed token does not open an organization without a membership", async () => {
  const other = await api.owner();
  const token = await signChanged({ org: other.orgId });
  expect(await readStatusWith(token)).toBe(401);
  const caller = createCaller(api.server, { authorization: `Bearer ${token}` });
  expect((await caller.get("/tunnels")).status).toBe(401);
  expect(await readStatusWith(await signChanged({ sid: readClaims(other).sid }))).toBe(401);
  expect(await readStatusWith(await signChanged({ sub: other.userId }))).toBe(401);
});

test("another encoding of a revoked token is revoked too", async () => {
  const person = await api.owner();
  const [header, payload, signature] = person.accessToken.split(".") as [string, string, string];
  // The last base64url character of 64 bytes has four unused bits.
  const last = BASE64URL.indexOf(signature.at(-1)!);
  const encodings = [1, 2, 3, 15].map(
    (bits) => `${header}.${payload}.${signature.slice(0, -1)}${BASE64URL[last ^ bits]}`,
  );
  encodings.push(`${person.accessToken}==`, person.accessToken.replaceAll("_", "/"));
  for (const encoding of encodings) await readStatusWith(encoding);
  expect((await person.post("/auth/logout")).status).toBe(200);
  for (const encoding of [person.accessToken, ...encodings]) {
    expect(await readStatusWith(encoding)).toBe(401);
  }
});
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

test("the role of the membership counts, not the role in the token", async () => {
  const viewer = await api.colleague(owner, "viewer");
  const promoted = await new SignJWT({ ...readClaims(viewer), role: "owner" })
    .setProtectedHeader({ ...HEADER, kid: jwk.kid })
    .sign(key);
  const caller = createCaller(api.server, { authorization: `Bearer ${promoted}` });
  expect((await caller.post("/tunnels", { localPort: 1 })).status).toBe(403);
});

test.each([
  ["another type of token", { typ: "JWT" }],
  ["no type", { typ: undefined }],
  ["an unknown critical extension", { crit: ["exp2"], exp2: 1 }],
])("%s is refused", async (_, header) => {
  const protectedHeader = { ...HEADER, kid: jwk.kid, ...header };
  const unsigned = `${encode(protectedHeader)}.${encode(claims)}`;
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = new Uint8Array(await crypto.subtle.sign(algorithm, key, toUtf8(unsigned)));
  expect(await readStatusWith(`${unsigned}.${toBase64Url(signature)}`)).toBe(401);
});

test("a truncated, padded or modified token is refused", async () => {
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
    expect(await readStatusWith(token)).toBe(401);
  }
});

test("other credentials of the service are not accepted as access tokens", async () => {
  const person = await api.owner();
  const { wireBytes } = await mintToken(person);
  await api.anonymous.post("/auth/forgot", { email: person.email });
  const reset = await waitUntil(async () => {
    const mails = (await api.readMailsTo(person.email)).map((mail) => PostalMime.parse(mail));
    const texts = (await Promise.all(mails)).map(({ text }) => text);
    return texts.flatMap((text) => /#token=([\w-]+)/.exec(text ?? "")?.[1] ?? [])[0];
  });
  await api.sql("update users set mfa_secret = 'encrypted' where id = $1", [person.userId]);
  const { email, password } = person;
  const { body } = await api.anonymous.post<MfaRequired>("/auth/login", { email, password });
  expect(body.challenge_token).toHaveLength(43);
  const refresh = person.cookie.slice("qnt_refresh=".length);
  for (const credential of [
    wireBytes,
    refresh,
    ...refresh.split("."),
    reset,
    body.challenge_token,
  ]) {
    expect(await readStatusWith(credential)).toBe(401);
  }
});

test("a token signed with the key of capability tokens is not accepted as an access token", async () => {
  const secrets = await readFile(join(api.server.dataDir, "secrets.json"), "utf8");
  const { TOKEN_SIGNING_KEY } = JSON.parse(secrets) as { TOKEN_SIGNING_KEY: string };
  const other = JSON.parse(TOKEN_SIGNING_KEY) as JWK & { kid: string };
  const otherKey = (await importJWK(other, "EdDSA")) as CryptoKey;
  for (const kid of [jwk.kid, other.kid]) {
    const token = await signChanged({}, { alg: "EdDSA", kid }, otherKey);
    expect(await readStatusWith(token)).toBe(401);
  }
});
