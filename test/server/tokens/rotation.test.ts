import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import {
  getSocket,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const rotate = (by: Person, nonce: string) => by.post<MintedToken>(`/tokens/${nonce}/rotate`);
const findToken = async (nonce: string) =>
  (await owner.get<Token[]>("/tokens")).body.find((token) => token.nonce === nonce);

test("rotating a token returns the same scopes with another nonce, for the same lifetime", async () => {
  const { wireBytes, wireBytesLen, ...old } = await mintToken(owner, {
    name: "ci",
    ttlHours: 48,
    allowedSubdomains: ["api-*"],
    bandwidthLimitMbps: 7,
    tunnelQuota: 3,
  });
  // Makes the token one that was minted a day ago.
  const day = 24 * 3600;
  await api.sql(
    "update tokens set issued_at = issued_at - interval '1 day', expires_at = expires_at - interval '1 day' where nonce = $1",
    [old.nonce],
  );
  const { status, body } = await rotate(owner, old.nonce);
  expect(status).toBe(200);
  expect(body).toEqual({
    ...old,
    id: expect.any(String),
    nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
    issuedAt: expect.any(Number),
    expiresAt: body.issuedAt + 2 * day,
    wireBytes: expect.any(String),
    wireBytesLen,
  });
  expect(body.nonce).not.toBe(old.nonce);
  expect(body.wireBytes).not.toBe(wireBytes);
  expect(body.issuedAt).toBeGreaterThanOrEqual(old.issuedAt);
  expect(await findToken(old.nonce)).toMatchObject({ revoked: true });
});

test("rotating a token disconnects the old token's agents, whose tunnel an agent with the new token takes over", async () => {
  const old = await mintToken(owner);
  const agent = await api.connectAgent(old.wireBytes, { port: 1, subdomain: "rotated" });
  const closed = once(getSocket(agent), "close");
  const { body: renewed } = await rotate(owner, old.nonce);
  expect((await closed)[0]).toBe(CLOSE.unauthorized);
  const again = await api.connectAgent(old.wireBytes, { port: 1, subdomain: "rotated" });
  expect(again.code).toBe(CLOSE.unauthorized);
  const next = await api.connectAgent(renewed.wireBytes, { port: 1, subdomain: "rotated" });
  expect(next.code).toBeUndefined();
  next.socket?.close();
});

test("rotating a token by twenty concurrent requests mints one new token", async () => {
  const { nonce } = await mintToken(owner, { name: "raced" });
  const replies = await Promise.all(Array.from({ length: 20 }, () => rotate(owner, nonce)));
  const statuses = replies.map(({ status }) => status).sort();
  expect(statuses).toEqual([200, ...Array<number>(19).fill(404)]);
  const { body } = await owner.get<Token[]>("/tokens");
  const valid = body.filter(({ name, revoked }) => name === "raced" && !revoked);
  expect(valid).toHaveLength(1);
});

test("rotating a token retains the budget, and its spent part", async () => {
  const { nonce, id } = await mintToken(owner);
  const budget = { monthlyBudgetUsdCents: 100 };
  await owner.put(`/tokens/${nonce}/budget`, budget);
  const { body: tunnel } = await owner.post<{ id: string }>("/tunnels", { localPort: 1 });
  await api.sql(
    "insert into token_usage values ($1, to_char(now() at time zone 'utc', 'YYYY-MM'), $2, 5000000000, 0)",
    [id, tunnel.id],
  );
  const { body } = await rotate(owner, nonce);
  expect(body).toMatchObject({ ...budget, spentUsdCents: 50 });
  expect(await findToken(body.nonce)).toMatchObject({ ...budget, spentUsdCents: 50 });
});

test("rotating is allowed for the caller's own tokens, and for all tokens to admins", async () => {
  const member = await api.colleague(owner, "member");
  const admin = await api.colleague(owner, "admin");
  const [own, other] = [await mintToken(member), await mintToken(owner)];
  expect((await rotate(member, own.nonce)).status).toBe(200);
  expect((await rotate(member, other.nonce)).status).toBe(403);
  expect((await rotate(admin, other.nonce)).status).toBe(200);
});

test("rotating a revoked or unknown token is refused", async () => {
  const { nonce } = await mintToken(owner);
  await owner.delete(`/tokens/${nonce}`);
  expect((await rotate(owner, nonce)).status).toBe(404);
  expect((await rotate(owner, "0".repeat(32))).status).toBe(404);
});

test("rotating a token leaves two events: the revoked token and its replacement", async () => {
  const old = await mintToken(owner);
  const { body: renewed } = await rotate(owner, old.nonce);
  const events = await api.sql(
    `select action, metadata->>'nonce' nonce, metadata->>'replaces' replaces from audit_events
      where metadata->>'nonce' in ($1, $2) order by created_at`,
    [old.nonce, renewed.nonce],
  );
  expect(events).toEqual([
    { action: "token_created", nonce: old.nonce, replaces: null },
    { action: "token_revoked", nonce: old.nonce, replaces: null },
    { action: "token_created", nonce: renewed.nonce, replaces: old.nonce },
  ]);
});
