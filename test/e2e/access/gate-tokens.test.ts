import { decodeJwt, exportJWK, generateKeyPair, SignJWT, type JWK } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { MintedVisitorToken } from "../../../protocol/schemas/access/visitor-tokens.ts";
import { startHttpServer, type HttpServer } from "../../harness/fakes/http-server.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { createCaller } from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import {
  basicAuthorization,
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
/** The last `Authorization` header that the local server has received. */
const readForwarded = () => findHeader(origin.requests.at(-1)!.headers, "authorization");
const visitWithToken = (jwt: string) => shop.visit("/", { authorization: `Bearer ${jwt}` });

describe("a tunnel that requires a token", () => {
  test("accepts tokens of its issuers and audiences, and forwards them only on request", async () => {
    const { issuer } = newIssuer([first.jwk]);
    const rule = { allowed_issuers: [issuer], allowed_audiences: ["shop"] };
    const jwt = await token(issuer, { aud: "shop" });
    for (const forward of [undefined, false, true]) {
      await requireToken({ ...rule, forward_token: forward });
      for (let n = 0; n < 3; n++) {
        expect(findErrorCode(await visitWithToken(jwt))).toBe("passed");
        expect(readForwarded()).toBe(forward ? `Bearer ${jwt}` : undefined);
      }
    }

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
});

describe("a tunnel that requires a token of this service", () => {
  const mint = async (tunnel = shop, body: object = {}) => {
    const path = `/tunnels/${tunnel.id}/visitor-tokens`;
    const reply = await owner.owner.post<MintedVisitorToken>(path, { subject: "ci", ...body });
    return reply.body.token;
  };

  test("accepts those that were minted for it, also at a custom domain, and no others", async () => {
    const desk = await owner.expose("gate-tokens-desk", origin.port);
    const forDesk = await mint(desk);
    const jwt = await mint();
    await requireToken();
    for (let n = 0; n < 2; n++) {
      expect(findErrorCode(await visitWithToken(jwt))).toBe("passed");
      expect(readForwarded()).toBeUndefined();
    }
    const host = "gate-tokens.example.test";
    const insert = "insert into hostnames (host, tunnel_id) values ($1, $2)";
    await owner.api.sql(insert, [host, shop.id]);
    const authorization = `Bearer ${jwt}`;
    expect(findErrorCode(await shop.visit("/", { host, authorization }))).toBe("passed");

    const seen = origin.requests.length;
    const wrong = [forDesk, `${jwt.slice(0, -4)}AAAA`, `${jwt}=`, await token("http://localhost")];
    for (const other of wrong) {
      expect(findErrorCode(await visitWithToken(other))).toBe("unauthorized");
    }
    expect(origin.requests).toHaveLength(seen);
    await requireToken({ forward_token: true });
    await visitWithToken(jwt);
    expect(readForwarded()).toBe(authorization);
    expect(requestedPaths).toEqual([]);
  });

  test("accepts them until they expire, and the API accepts none", async () => {
    await requireToken();
    const jwt = await mint(shop, { ttl_seconds: 60 });
    expect(decodeJwt(jwt)).toMatchObject({ sub: "ci", aud: "shop.localhost", tunnel: shop.id });
    const bearer = createCaller(owner.api.server, { authorization: `Bearer ${jwt}` });
    expect((await bearer.get("/auth/me")).status).toBe(401);
  });
});

describe("an access token of the API", () => {
  const RULES: [string, object[]][] = [
    ["requires a token of this service", [{ kind: "jwt_validation" }]],
    ["forwards tokens", [{ kind: "jwt_validation", forward_token: true }]],
    ["names its audience", [{ kind: "jwt_validation", allowed_audiences: ["underpass"] }]],
    ["has another rule", [{ kind: "deny", path_prefix: "/admin" }]],
    ["has no rule", []],
  ];

  test.each(RULES)("is neither accepted nor forwarded where the policy %s", async (_, actions) => {
    await shop.put("policy", { actions });
    await shop.put("inspector", { redactHeaders: [] });
    const visitor = await owner.api.owner();
    const before = origin.requests.length;
    for (const scheme of ["Bearer", "bearer", "Bearer  "]) {
      const authorization = `${scheme} ${visitor.accessToken}`;
      const refused = await shop.visit("/leak", { authorization });
      expect([scheme, refused.status, findErrorCode(refused)]).toEqual([
        scheme,
        401,
        "unauthorized",
      ]);
      expect(findHeader(refused.headers, "www-authenticate")).toBe('Bearer error="invalid_token"');
    }
    expect(origin.requests).toHaveLength(before);
    await expectNotCaptured(visitor.accessToken);
  });

  test("can't be required: this service is no issuer", async () => {
    for (const issuer of [owner.api.server.url, `${owner.api.server.url}/`]) {
      const reply = await requireToken({
        allowed_issuers: [issuer.replace("127.0.0.1", "localhost")],
      });
      expect([issuer, reply.status, reply.body.error]).toEqual([issuer, 400, "bad_policy"]);
    }
  });
});

test("credentials that a gate refused are not captured, whatever the owner redacts", async () => {
  await shop.put("inspector", { redactHeaders: [] });
  const { issuer } = newIssuer([first.jwk]);
  await requireToken({ allowed_issuers: [issuer] });
  const jwt = await token("https://other.example");
  expect(findErrorCode(await visitWithToken(jwt))).toBe("unauthorized");
  await expectNotCaptured(jwt);
  await shop.put("policy", { actions: [] });
  await shop.put("auth", { username: "ann", password: "open sesame" });
  const { authorization } = basicAuthorization("ann", "my bank's password");
  expect(findErrorCode(await shop.visit("/", { authorization }))).toBe("unauthorized");
  await expectNotCaptured(authorization);
  await shop.remove("auth");
});

/** Reads the latest captured requests, with their headers. */
async function expectNotCaptured(secret: string): Promise<void> {
  await vi.waitFor(async () => {
    const { owner: reader } = owner;
    const list = await reader.get<{ id: string; path: string; status: number }[]>(
      `/inspector?tunnel_id=${shop.id}&limit=3`,
    );
    expect(list.body.map(({ status }) => status)).toContain(401);
    for (const { id } of list.body) {
      const event = await reader.get(`/inspector/${id}`);
      expect(event.status).toBe(200);
      expect(JSON.stringify(event.body)).not.toContain(secret);
    }
  }, WAIT_OPTIONS);
}

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
