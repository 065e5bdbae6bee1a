import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import { fromBase64, toBase64Url } from "../../../shared/bytes.ts";
import {
  createCaller,
  getSocket,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { formatRoute, readRoutes, requestStatus } from "../../harness/server/routes.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  await owner.post("/projects", { slug: "staging", name: "Staging" });
});
afterAll(() => api.stop());

async function mintMaster(by: Person, body: object = {}): Promise<MintedToken> {
  return (await by.post<MintedToken>("/tokens/master", { name: "ci", ...body })).body;
}
const createMachine = (bearer: string) =>
  createCaller(api.server, { authorization: `Bearer ${bearer}` });
const mintChild = (bearer: string, slug = "staging", body: object = { name: "job" }) =>
  createMachine(bearer).post<MintedToken>(`/projects/${slug}/tokens`, body);

test("a master key is shown once, with its bearer form, and is valid for 90 days or as requested", async () => {
  const { wireBytes, wireBytesLen, bearer, ...shown } = await mintMaster(owner);
  expect(bearer).toBe(`mtk_master_${toBase64Url(fromBase64(wireBytes)!)}`);
  expect(fromBase64(wireBytes)).toHaveLength(wireBytesLen);
  expect(shown).toMatchObject({
    kind: "master",
    tunnelQuota: 0,
    projectSlug: null,
    expiresAt: shown.issuedAt + 90 * 24 * 3600,
  });
  const { body } = await owner.get<Token[]>("/tokens");
  expect(body[0]).toEqual(shown);
  const shortLived = await mintMaster(owner, { ttl_days: 1 });
  expect(shortLived.expiresAt).toBe(shortLived.issuedAt + 24 * 3600);
});

test.each([0, 366, 1.5, "90", null])("a master key cannot have a lifetime of %j", async (days) => {
  const reply = await owner.post("/tokens/master", { name: "x", ttl_days: days });
  expect(reply).toMatchObject({
    status: 400,
    body: { error: "invalid_request", fields: [{ path: "ttl_days" }] },
  });
});

test("a master key mints project tokens that are linked to it, for an hour by default", async () => {
  const master = await mintMaster(owner);
  const { status, body } = await mintChild(master.bearer!);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    kind: "agent",
    projectSlug: "staging",
    tunnelQuota: 5,
    bandwidthLimitMbps: 100,
    expiresAt: body.issuedAt + 3600,
    createdBy: owner.userId,
    mintedByMasterId: master.id,
  });
  const requested = await mintChild(master.bearer!, "staging", { name: "job", ttl_hours: 5 });
  expect(requested.body.expiresAt).toBe(requested.body.issuedAt + 5 * 3600);
  const shortLived = await mintMaster(owner, { ttl_days: 1 });
  const longest = await mintChild(shortLived.bearer!, "staging", { name: "job", ttl_hours: 1_000 });
  expect(longest.body.expiresAt).toBe(shortLived.expiresAt);
  const events = await api.sql(
    "select user_id, metadata->>'masterNonce' master from audit_events where metadata->>'nonce' = $1",
    [body.nonce],
  );
  expect(events).toEqual([{ user_id: null, master: master.nonce }]);
});

test("a master key opens no tunnels", async () => {
  const { wireBytes, bearer } = await mintMaster(owner);
  for (const shown of [wireBytes, bearer]) {
    const attempt = await api.connectAgent(shown, { port: 1, subdomain: "mastered" });
    expect(attempt.code).toBe(CLOSE.unauthorized);
  }
  const attempt = await api.connectAgent(wireBytes, { port: 1 });
  expect(attempt.reason).toBe(
    "unauthorized: the token is a master key, which can only mint tokens",
  );
});

/** The one route for master keys, and the two WebSockets, which refuse with close codes. */
const EXCEPTIONS = [
  "POST /projects/{slug}/tokens",
  "GET /agent/connect",
  "GET /agent/streams",
  "GET /agent/diagnostics",
];

test("a master key is accepted by no other route", async () => {
  const { bearer } = await mintMaster(owner);
  const routes = (await readRoutes(api)).filter(({ security }) => security.length > 0);
  for (const route of routes) {
    const name = formatRoute(route);
    if (EXCEPTIONS.includes(name)) continue;
    expect([name, await requestStatus(route, createMachine(bearer!))]).toEqual([name, 401]);
  }
});

/** Another text of the same bytes, for a decoder that ignores the bits that are left over. */
function addUnusedBits(text: string): string {
  const twin = text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) + 1);
  expect(Buffer.from(twin, "base64url")).toEqual(Buffer.from(text, "base64url"));
  return twin;
}

describe("minting with a master key is refused", () => {
  test("with any other or invalid credential", async () => {
    const { bearer, wireBytes, nonce } = await mintMaster(owner);
    const agent = await mintToken(owner);
    const bytes = fromBase64(wireBytes)!;
    bytes[20]! ^= 1;
    const revoked = await mintMaster(owner);
    await owner.delete(`/tokens/${revoked.nonce}`);
    const bearers = {
      "without the prefix": toBase64Url(fromBase64(wireBytes)!),
      "of an agent": agent.wireBytes,
      "of an agent, with the prefix": `mtk_master_${toBase64Url(fromBase64(agent.wireBytes)!)}`,
      changed: `mtk_master_${toBase64Url(bytes)}`,
      padded: `${bearer!}=`,
      "in base64": `mtk_master_${wireBytes}`,
      "with unused bits": addUnusedBits(bearer!),
      "cut off": bearer!.slice(0, -4),
      "the prefix alone": "mtk_master_",
      "its nonce": `mtk_master_${nonce}`,
      revoked: revoked.bearer!,
      "revoked, in another encoding": `mtk_master_${revoked.wireBytes}`,
    };
    for (const [kind, invalid] of Object.entries(bearers)) {
      expect([kind, (await mintChild(invalid)).status]).toEqual([kind, 401]);
    }
    expect((await mintChild(bearer!)).status).toBe(200);
  });

  test("once it has expired", async () => {
    const { bearer, nonce } = await mintMaster(owner);
    await api.sql("update tokens set expires_at = now() where nonce = $1", [nonce]);
    expect((await mintChild(bearer!)).status).toBe(401);
  });

  test("for projects of another organization, with 404", async () => {
    const otherOwner = await api.owner();
    await otherOwner.post("/projects", { slug: "theirs", name: "Theirs" });
    const { bearer } = await mintMaster(owner);
    expect((await mintChild(bearer!, "theirs")).status).toBe(404);
    expect((await mintChild(bearer!, "nowhere")).status).toBe(404);
  });
});

describe("the revocation of a master key", () => {
  const readRevocations = (nonces: string[]) =>
    api.sql<{ nonce: string }>(
      `select metadata->>'nonce' nonce from audit_events
        where action = 'token_revoked' and metadata->>'nonce' = any($1)`,
      [nonces],
    );
  const listValidChildren = async (masterId: string) =>
    api.sql("select 1 from tokens where minted_by_master_id = $1 and revoked_at is null", [
      masterId,
    ]);

  test("revokes all tokens that it minted, with an event for each, and disconnects their agents", async () => {
    const master = await mintMaster(owner);
    const children = [await mintChild(master.bearer!), await mintChild(master.bearer!)];
    const other = await mintChild((await mintMaster(owner)).bearer!);
    const agents = await Promise.all(
      children.map(({ body }, at) =>
        api.connectAgent(body.wireBytes, { port: 1, subdomain: `child-${at}` }),
      ),
    );
    const closed = agents.map((agent) => once(getSocket(agent), "close"));
    expect((await owner.delete(`/tokens/${master.nonce}`)).status).toBe(200);
    for (const [code] of await Promise.all(closed)) expect(code).toBe(CLOSE.unauthorized);

    const nonces = [master.nonce, ...children.map(({ body }) => body.nonce)];
    const revoked = (await readRevocations(nonces)).map(({ nonce }) => nonce);
    expect(revoked.sort()).toEqual(nonces.sort());
    const { body } = await owner.get<Token[]>("/tokens");
    expect(body.find(({ nonce }) => nonce === other.body.nonce)?.revoked).toBe(false);
  });

  test("does not include tokens that expired long before: there can be tens of thousands", async () => {
    const master = await mintMaster(owner);
    const [valid, expired] = [await mintChild(master.bearer!), await mintChild(master.bearer!)];
    await api.sql("update tokens set expires_at = now() - interval '2 hours' where nonce = $1", [
      expired.body.nonce,
    ]);
    expect((await owner.delete(`/tokens/${master.nonce}`)).status).toBe(200);
    const nonces = [valid.body.nonce, expired.body.nonce];
    expect(await readRevocations(nonces)).toEqual([{ nonce: valid.body.nonce }]);
    expect((await owner.delete(`/tokens/${expired.body.nonce}`)).status).toBe(200);
    expect(await readRevocations(nonces)).toHaveLength(2);
  });

  test("leaves no token of twenty that are minted at the same time", async () => {
    const master = await mintMaster(owner);
    const minting = Array.from({ length: 20 }, () => mintChild(master.bearer!));
    const [revoked] = await Promise.all([owner.delete(`/tokens/${master.nonce}`), ...minting]);
    expect(revoked.status).toBe(200);
    for (const { status } of await Promise.all(minting)) expect([200, 401]).toContain(status);
    expect(await listValidChildren(master.id)).toEqual([]);
  });

  test("by rotation spares the tokens that it minted, which the new key's revocation and budget cover", async () => {
    const master = await mintMaster(owner);
    const { body: child } = await mintChild(master.bearer!);
    const query = { port: 1, subdomain: "child-rotated" };
    const socket = getSocket(await api.connectAgent(child.wireBytes, query));
    const closed = once(socket, "close");
    const { body: renewed } = await owner.post<MintedToken>(`/tokens/${master.nonce}/rotate`);
    expect(renewed.bearer).toMatch(/^mtk_master_/);
    expect((await mintChild(master.bearer!)).status).toBe(401);
    expect((await mintChild(renewed.bearer!)).status).toBe(200);
    expect(await listValidChildren(renewed.id)).toHaveLength(2);
    const { body: listed } = await owner.get<Token[]>("/tokens");
    expect(listed.find(({ nonce }) => nonce === child.nonce)?.revoked).toBe(false);
    expect(socket.readyState).toBe(socket.OPEN);

    await owner.put(`/tokens/${renewed.nonce}/budget`, { monthlyBudgetUsdCents: 0 });
    expect((await closed)[0]).toBe(CLOSE.BUDGET_EXCEEDED);
    await owner.put(`/tokens/${renewed.nonce}/budget`, { monthlyBudgetUsdCents: null });
    expect((await owner.delete(`/tokens/${renewed.nonce}`)).status).toBe(200);
    expect(await listValidChildren(renewed.id)).toEqual([]);
    expect((await api.connectAgent(child.wireBytes, query)).code).toBe(CLOSE.unauthorized);
  });

  test("includes a token that it minted and a user has rotated, which expires with it at the latest", async () => {
    const master = await mintMaster(owner, { ttl_days: 1 });
    const day = { name: "job", ttl_hours: 24 };
    const { body: child } = await mintChild(master.bearer!, "staging", day);
    const age =
      "issued_at = issued_at - interval '23 hours', expires_at = expires_at - interval '23 hours'";
    await api.sql(`update tokens set ${age} where id = any($1)`, [[master.id, child.id]]);
    const { body: renewed } = await owner.post<MintedToken>(`/tokens/${child.nonce}/rotate`);
    expect(renewed).toMatchObject({
      mintedByMasterId: master.id,
      expiresAt: master.expiresAt - 23 * 3600,
    });
    await owner.delete(`/tokens/${master.nonce}`);
    expect(await listValidChildren(master.id)).toEqual([]);
    expect((await owner.post(`/tokens/${renewed.nonce}/rotate`)).status).toBe(404);
  });

  test("includes a token that is rotated at the same time", async () => {
    const master = await mintMaster(owner);
    const children = await Promise.all(Array.from({ length: 10 }, () => mintChild(master.bearer!)));
    const rotations = children.map(({ body: { nonce } }) => owner.post(`/tokens/${nonce}/rotate`));
    const [revoked] = await Promise.all([owner.delete(`/tokens/${master.nonce}`), ...rotations]);
    expect(revoked.status).toBe(200);
    for (const { status } of await Promise.all(rotations)) expect([200, 404]).toContain(status);
    expect(await listValidChildren(master.id)).toEqual([]);
  });

  test("by rotation leaves no token that the old key mints at the same time without the new one", async () => {
    const master = await mintMaster(owner);
    const minting = Array.from({ length: 20 }, () => mintChild(master.bearer!));
    const { body: renewed } = await owner.post<MintedToken>(`/tokens/${master.nonce}/rotate`);
    for (const { status } of await Promise.all(minting)) expect([200, 401]).toContain(status);
    expect(await listValidChildren(master.id)).toEqual([]);
    await owner.delete(`/tokens/${renewed.nonce}`);
    expect(await listValidChildren(renewed.id)).toEqual([]);
  });

  test("happens when the member who minted it is removed", async () => {
    const member = await api.colleague(owner, "member");
    const master = await mintMaster(member);
    await mintChild(master.bearer!);
    await owner.delete(`/orgs/${owner.orgId}/members/${member.userId}`);
    expect(await listValidChildren(master.id)).toEqual([]);
    expect((await mintChild(master.bearer!)).status).toBe(401);
  });
});
