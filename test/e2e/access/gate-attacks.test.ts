/** Attacks of visitors on the gates of a tunnel. Those on its sign-in are in identity-gate-attacks.test.ts. */
import { createHmac } from "node:crypto";
import { exportJWK, generateKeyPair, SignJWT, type JWK } from "jose";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { MintedVisitorToken } from "../../../protocol/schemas/access/visitor-tokens.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  findErrorCode,
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { findHeader, type Answer } from "../../harness/tunnel/raw-http.ts";

let owner: TunnelOwner;
let origin: RawOrigin;
let shop: OwnedTunnel;
beforeAll(async () => {
  [owner, origin] = await Promise.all([startTunnelOwner(), startRawOrigin(() => OK)]);
  shop = await owner.expose("gate-attacks", origin.port);
});
afterAll(async () => {
  await owner.stop();
  await origin.stop();
});
beforeEach(async () => {
  await shop.remove("policy");
  origin.requests.length = 0;
});

const policy = (...actions: object[]) => shop.put("policy", { actions });
const readCodes = async (...visits: Promise<Answer>[]) =>
  (await Promise.all(visits)).map(findErrorCode);

test("an ambiguous path that is longer than a deny rule reads is refused", async () => {
  await policy({ kind: "deny", path_prefix: "/admin" });
  for (const part of ["//", "%2f..", ";a/%5c"]) {
    const path = `/${part.repeat(120_000 / part.length)}`;
    for (let n = 0; n < 3; n++) {
      const refused = await shop.visit(path);
      expect([part, refused.status, findErrorCode(refused)]).toEqual([part, 403, "forbidden"]);
      expect(refused.body.toString()).toContain("too long");
    }
  }
  expect(origin.requests).toEqual([]);
  const plain = `/${"public/".repeat(5_000)}`;
  expect(await readCodes(shop.visit(plain))).toEqual(["passed"]);
  await shop.remove("policy");
  expect(await readCodes(shop.visit(`/${"%2f/".repeat(5_000)}`))).toEqual(["passed"]);
});

test("an allowlist admits addresses, whatever address a visitor claims", async () => {
  const claims = ["x-forwarded-for", "x_forwarded_for", "cf-connecting-ip", "x-real-ip"];
  const forged = Object.fromEntries(claims.map((name) => [name, "192.0.2.1"]));
  const own = { forwarded: "for=192.0.2.1", "underpass-connection": '{"clientIp":"192.0.2.1"}' };
  await shop.put("ip-allowlist", { cidrs: ["192.0.2.0/24"] });
  const codes = await readCodes(shop.visit("/"), shop.visit("/", { ...forged, ...own }));
  await shop.put("ip-allowlist", { cidrs: ["127.0.0.0/8"] });
  codes.push(...(await readCodes(shop.visit("/", { ...forged, ...own }))));
  await shop.remove("ip-allowlist");
  expect(codes).toEqual(["forbidden", "forbidden", "passed"]);
  expect(findHeader(origin.requests[0]!.headers, "x-forwarded-for")).toBe("127.0.0.1");
});

test("a token is not verified in any way that its visitor chooses", async () => {
  await policy({ kind: "jwt_validation" });
  const path = `/tunnels/${shop.id}/visitor-tokens`;
  const genuine = (await owner.owner.post<MintedVisitorToken>(path, { subject: "ann" })).body.token;
  const [header = "", claims = "", signature = ""] = genuine.split(".");
  const { body } = await owner.api.anonymous.get<{ keys: JWK[] }>("/.well-known/jwks.json");
  const [jwk] = body.keys;
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const typ = "underpass-visitor-token+jwt";
  const own = await generateKeyPair("ES256", { extractable: true });
  const sign = (fields: object) =>
    new SignJWT(JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown>)
      .setProtectedHeader({ alg: "ES256", typ, kid: jwk!.kid!, ...fields })
      .sign(own.privateKey);
  const hmac = (key: string) => {
    const input = `${encode({ alg: "HS256", typ, kid: jwk!.kid })}.${claims}`;
    return `${input}.${createHmac("sha256", key).update(input).digest("base64url")}`;
  };
  const ownJwk = await exportJWK(own.publicKey);
  const forged = [
    ...["none", "None", "NONE"].map((alg) => `${encode({ alg, typ })}.${claims}.`),
    `${header}.${claims}.`,
    `${header}.${encode({ sub: "root" })}.${signature}`,
    hmac(JSON.stringify(jwk)),
    hmac(jwk!.x!),
    await sign({}),
    await sign({ jwk: ownJwk }),
    await sign({ kid: "../../dev/null" }),
    await sign({ jku: "http://127.0.0.1/jwks.json" }),
    `${genuine}.${signature}`,
    `${header}=.${claims}.${signature}`,
    `${genuine}=`,
  ];
  for (const token of forged) {
    const refused = await shop.visit("/", { authorization: `Bearer ${token}` });
    expect([token, refused.status, findErrorCode(refused)]).toEqual([token, 401, "unauthorized"]);
  }
  expect(origin.requests).toEqual([]);
  const authorization = `Bearer ${genuine}`;
  expect(await readCodes(shop.visit("/", { authorization }))).toEqual(["passed"]);
});

test("no text of a visitor becomes a header of an answer", async () => {
  await policy({ kind: "deny", path_prefix: "/" });
  for (const path of [
    "/%0d%0aset-cookie:%20x=1",
    "/?a=%0d%0aset-cookie:x=1",
    "/%E5%98%8Dset-cookie:x",
  ]) {
    const { headers } = await shop.visit(path, { accept: "text/html" });
    expect([path, findHeader(headers, "set-cookie")]).toEqual([path, undefined]);
  }
});
