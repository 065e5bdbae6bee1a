import { exportJWK, generateKeyPair, SignJWT, type JWK } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startHttpServer, type HttpServer } from "../../harness/fakes/listening.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  findErrorCode,
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { findHeader } from "../../harness/tunnel/raw-http.ts";

interface Pair {
  jwk: JWK;
  privateKey: CryptoKey;
}

async function newPair(kid: string): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  return { jwk: { ...(await exportJWK(publicKey)), kid, alg: "ES256" }, privateKey };
}

let owner: TunnelOwner;
let origin: RawOrigin;
let shop: OwnedTunnel;
let issuers: HttpServer;
/** An issuer's response: its keys, or a custom response. */
type IssuerResponse = JWK[] | { status: number; body?: string; location?: string };
const responses = new Map<string, IssuerResponse>();
/** The paths that were requested. */
let requestedPaths: string[] = [];
let first: Pair;
let second: Pair;

beforeAll(async () => {
  [first, second] = await Promise.all([newPair("one"), newPair("two")]);
  issuers = await startHttpServer((request, response) => {
    const path = request.url ?? "";
    requestedPaths.push(path);
    const name = path.split("/")[1] ?? "";
    const issuer = `${issuers.origin}/${name}`;
    const content = responses.get(name) ?? { status: 404 };
    if (!Array.isArray(content)) {
      if (content.location !== undefined) response.setHeader("location", content.location);
      response.writeHead(content.status).end(content.body);
    } else if (path.endsWith("/jwks")) response.end(JSON.stringify({ keys: content }));
    else response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/jwks` }));
  });
  origin = await startRawOrigin();
  owner = await startTunnelOwner({ env: { ALLOW_PRIVATE_FETCH: "true" } });
  shop = await owner.expose("shop", origin.port);
});
afterAll(async () => {
  await owner.stop();
  await origin.stop();
  await issuers.stop();
});
afterEach(() => {
  responses.clear();
  requestedPaths = [];
});

/** Each test has its own issuer, because the server caches keys. */
function newIssuer(response: IssuerResponse) {
  const name = crypto.randomUUID();
  responses.set(name, response);
  return { name, issuer: `${issuers.origin}/${name}` };
}

const requireToken = (rule: object = {}) =>
  shop.put("policy", { actions: [{ kind: "jwt_validation", ...rule }] });
const token = (issuer: string, claims: object = {}, { jwk, privateKey } = first) =>
  new SignJWT({ iss: issuer, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: jwk.kid! })
    .setExpirationTime("10m")
    .sign(privateKey);
const visitWithToken = (jwt: string) => shop.visit("/", { authorization: `Bearer ${jwt}` });

describe("a tunnel that requires a token", () => {
  test("accepts tokens of its issuers and audiences, and forwards them", async () => {
    const { issuer } = newIssuer([first.jwk]);
    await requireToken({ allowed_issuers: [issuer], allowed_audiences: ["shop"] });
    const jwt = await token(issuer, { aud: "shop" });
    for (let n = 0; n < 3; n++) expect(findErrorCode(await visitWithToken(jwt))).toBe("passed");
    expect(findHeader(origin.requests.at(-1)!.headers, "authorization")).toBe(`Bearer ${jwt}`);

    const refused = await visitWithToken(await token(issuer, { aud: "desk" }));
    expect([refused.status, findErrorCode(refused)]).toEqual([401, "unauthorized"]);
    expect(findHeader(refused.headers, "www-authenticate")).toBe('Bearer error="invalid_token"');
    const bare = await shop.visit("/");
    expect([bare.status, findHeader(bare.headers, "www-authenticate")]).toEqual([401, "Bearer"]);
    for (const path of [`/?access_token=${jwt}`, `/?token=${jwt}`]) {
      expect(findErrorCode(await shop.visit(path))).toBe("unauthorized");
    }
  });

  test("requests an issuer's keys once for many concurrent requests", async () => {
    const { issuer, name } = newIssuer([first.jwk]);
    await requireToken({ allowed_issuers: [issuer] });
    const tokens = await Promise.all(Array.from({ length: 30 }, (_, n) => token(issuer, { n })));
    const codes = (await Promise.all(tokens.map(visitWithToken))).map(findErrorCode);
    expect(codes).toEqual(Array(30).fill("passed"));
    expect(requestedPaths.filter((path) => path === `/${name}/jwks`)).toHaveLength(1);
  });

  test("accepts an issuer's new key, and no key of another issuer with the same id", async () => {
    const [a, b] = [newIssuer([first.jwk]), newIssuer([{ ...second.jwk, kid: "one" }])];
    await requireToken({ allowed_issuers: [a.issuer, b.issuer] });
    expect(findErrorCode(await visitWithToken(await token(a.issuer)))).toBe("passed");
    expect(findErrorCode(await visitWithToken(await token(b.issuer)))).toBe("unauthorized");
    const ofB = await token(b.issuer, {}, { ...second, jwk: { ...second.jwk, kid: "one" } });
    expect(findErrorCode(await visitWithToken(ofB))).toBe("passed");
  });

  test("counts only requests with a token against its limit", async () => {
    const { issuer } = newIssuer([first.jwk]);
    const actions = [
      { kind: "rate_limit", requests_per_minute: 3 },
      { kind: "jwt_validation", allowed_issuers: [issuer] },
    ];
    await shop.put("policy", { actions });
    for (let n = 0; n < 10; n++) expect(findErrorCode(await shop.visit("/"))).toBe("unauthorized");
    expect(findErrorCode(await visitWithToken(await token(issuer)))).toBe("passed");
  });

  test("accepts this service's own tokens if it names no issuer", async () => {
    await requireToken();
    const { accessToken } = owner.owner;
    expect(findErrorCode(await visitWithToken(accessToken))).toBe("passed");
    expect(findErrorCode(await visitWithToken(`${accessToken.slice(0, -4)}AAAA`))).toBe(
      "unauthorized",
    );
    expect(findErrorCode(await visitWithToken(await token("http://localhost")))).toBe(
      "unauthorized",
    );
    expect(requestedPaths).toEqual([]);
  });
});

describe("an issuer", () => {
  test.each([
    ["that is down", { status: 500 }],
    ["that has no document", { status: 404 }],
    ["that sends invalid content", { status: 200, body: "<html>" }],
    ["that speaks for another", { status: 200, body: '{"issuer":"x","jwks_uri":"http://x/"}' }],
    ["that talks without end", { status: 200, body: `{"x":"${"y".repeat(300_000)}"}` }],
  ])("%s makes tokens unverifiable", async (_, response) => {
    const { issuer } = newIssuer(response);
    await requireToken({ allowed_issuers: [issuer] });
    const answer = await visitWithToken(await token(issuer));
    expect([answer.status, findErrorCode(answer)]).toEqual([503, "unavailable"]);
    expect(Number(findHeader(answer.headers, "retry-after"))).toBeGreaterThan(0);
  });

  test("is requested at the configured address only", async () => {
    const { name: otherIssuerName } = newIssuer([first.jwk]);
    const location = `${issuers.origin}/${otherIssuerName}/.well-known/openid-configuration`;
    const { issuer } = newIssuer({ status: 302, location });
    await requireToken({ allowed_issuers: [issuer] });
    expect(findErrorCode(await visitWithToken(await token(issuer)))).toBe("unavailable");
    expect(requestedPaths.filter((path) => path.startsWith(`/${otherIssuerName}/`))).toEqual([]);
  });

  test("without TLS or on a private address is not requested, unless the operator allows it", async () => {
    const strict = await startTunnelOwner();
    const desk = await strict.expose("token-desk", origin.port);
    const rule = (issuer: string) =>
      desk.put("policy", { actions: [{ kind: "jwt_validation", allowed_issuers: [issuer] }] });
    expect(await rule(issuers.origin)).toMatchObject({
      status: 400,
      body: { error: "bad_policy" },
    });
    for (const host of ["127.0.0.1", "localhost", "[::1]", "0x7f000001"]) {
      const issuer = `https://${host}:${new URL(issuers.origin).port}`;
      expect((await rule(issuer)).status).toBe(200);
      const authorization = `Bearer ${await token(issuer)}`;
      expect([host, findErrorCode(await desk.visit("/", { authorization }))]).toEqual([
        host,
        "unavailable",
      ]);
    }
    expect(requestedPaths).toEqual([]);
    await strict.stop();
  });
});
