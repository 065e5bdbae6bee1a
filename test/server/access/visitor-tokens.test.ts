/** Minting tokens for visitors of a tunnel. What the tunnel accepts is tested in test/e2e/access/gate-tokens.test.ts. */
import { decodeJwt, decodeProtectedHeader } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import {
  VISITOR_TOKEN_MAX_SECONDS,
  type MintedVisitorToken,
} from "../../../protocol/schemas/access/visitor-tokens.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
let tunnel: Tunnel;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  tunnel = await createTunnel();
});
afterAll(() => api.stop());

const createTunnel = async () => (await owner.post<Tunnel>("/tunnels", { localPort: 1 })).body;
const mint = (body: object, id = tunnel.id, by: Person = owner) =>
  by.post<MintedVisitorToken & ErrorBody>(`/tunnels/${id}/visitor-tokens`, body);

describe("a visitor's token", () => {
  test("names its tunnel, its subject and its end, and has a type of its own", async () => {
    const before = Math.floor(Date.now() / 1000);
    const { status, body } = await mint({ subject: "build 7", ttl_seconds: 60 });
    expect(status).toBe(200);
    expect(decodeProtectedHeader(body.token)).toMatchObject({
      alg: "ES256",
      typ: "underpass-visitor-token+jwt",
    });
    const claims = decodeJwt(body.token);
    expect(claims).toMatchObject({
      iss: api.server.url.replace("127.0.0.1", "localhost"),
      sub: "build 7",
      aud: `${tunnel.subdomain}.localhost`,
      tunnel: tunnel.id,
    });
    expect(new Date(body.expiresAt).getTime()).toBe(claims.exp! * 1000);
    expect(claims.exp! - before).toBeGreaterThanOrEqual(60);
    expect(claims.exp! - claims.iat!).toBeLessThanOrEqual(60);
  });

  test("is recorded in the audit log, without the token", async () => {
    const { body } = await mint({ subject: "ann", ttl_seconds: 5 });
    const [event] = (await owner.get<{ action: string }[]>("/events?limit=1")).body;
    expect(event).toMatchObject({
      action: "visitor_token_minted",
      resourceType: "tunnel",
      resourceId: tunnel.id,
      metadata: { subject: "ann", expiresAt: body.expiresAt },
    });
    expect(JSON.stringify(event)).not.toContain(body.token);
  });

  test("lasts an hour by default", async () => {
    const { iat, exp } = decodeJwt((await mint({ subject: "x" })).body.token);
    expect(exp! - iat!).toBeGreaterThan(3_590);
    expect(exp! - iat!).toBeLessThanOrEqual(3_600);
  });

  test.each([
    ["no subject", {}, "subject"],
    ["an empty subject", { subject: " " }, "subject"],
    ["a long subject", { subject: "x".repeat(256) }, "subject"],
    ["a subject of two lines", { subject: "a\nb" }, "subject"],
    ["no time", { subject: "x", ttl_seconds: 0 }, "ttl_seconds"],
    ["half a second", { subject: "x", ttl_seconds: 0.5 }, "ttl_seconds"],
    [
      "more than a day",
      { subject: "x", ttl_seconds: VISITOR_TOKEN_MAX_SECONDS + 1 },
      "ttl_seconds",
    ],
  ])("with %s is refused", async (_, body, path) => {
    const reply = await mint(body);
    expect([reply.status, reply.body.error]).toEqual([400, "invalid_request"]);
    expect(reply.body.fields?.map((field) => field.path)).toEqual([path]);
  });

  test("is minted by members, for tunnels of their organization", async () => {
    const body = { subject: "x" };
    expect((await mint(body, tunnel.id, await api.colleague(owner, "member"))).status).toBe(200);
    expect((await mint(body, tunnel.id, await api.colleague(owner, "viewer"))).status).toBe(403);
    expect((await mint(body, tunnel.id, await api.owner())).status).toBe(404);
    expect((await mint(body, crypto.randomUUID())).status).toBe(404);
  });

  test("is not minted for a tunnel that can't have visitors with tokens", async () => {
    const body = { subject: "x" };
    const tcp = await createTunnel();
    await api.sql("update tunnels set protocol = 'tcp' where id = $1", [tcp.id]);
    expect(await mint(body, tcp.id)).toMatchObject({
      status: 400,
      body: { error: "invalid_request" },
    });
    const ended = await createTunnel();
    await api.sql("update tunnels set status = 'expired' where id = $1", [ended.id]);
    expect(await mint(body, ended.id)).toMatchObject({ status: 410, body: { error: "expired" } });
    await owner.delete(`/tunnels/${ended.id}`);
    expect((await mint(body, ended.id)).status).toBe(404);
  });
});
