import { afterAll, beforeAll, expect, test } from "vitest";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import type { Billing } from "../../../protocol/schemas/billing.ts";
import type { MintedToken } from "../../../protocol/schemas/tokens.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { damageObject } from "../../harness/unreadable-objects.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const connect = (token: MintedToken, subdomain: string) =>
  api.connectAgent(token.wireBytes, { port: 1, subdomain });

test("of twenty agents that connect at once with a quota of five, five are admitted", async () => {
  const token = await mintToken(owner, { tunnelQuota: 5 });
  const attempts = await Promise.all(
    Array.from({ length: 20 }, (_, n) => connect(token, `quota-${n}`)),
  );
  const refused = attempts.filter(({ socket }) => socket === undefined);
  expect(refused).toHaveLength(15);
  for (const { code } of refused) expect(code).toBe(CLOSE.quota_exceeded);
  const rows = await api.sql(
    "select 1 from tunnels where connected_token_id = $1 and agent_connected",
    [token.id],
  );
  expect(rows).toHaveLength(5);
  for (const { socket } of attempts) socket?.close();
});

test("a disconnected agent frees its quota for exactly one of the agents that connect next", async () => {
  const token = await mintToken(owner, { tunnelQuota: 1 });
  const first = await connect(token, "place-0");
  first.socket?.close();
  const [next] = await waitUntil(async () => {
    const attempts = await Promise.all([1, 2, 3].map((n) => connect(token, `place-${n}`)));
    const open = attempts.flatMap(({ socket }) => socket ?? []);
    expect(open.length).toBeLessThanOrEqual(1);
    return open.length > 0 && open;
  });
  next?.close();
});

test("of six agents that connect at once to existing tunnels with a quota of three, three are admitted", async () => {
  const names = [0, 1, 2, 3, 4, 5].map((n) => `existing-${n}`);
  const first = await mintToken(owner, { tunnelQuota: 6 });
  const before = await Promise.all(names.map((name) => connect(first, name)));
  for (const { socket } of before) socket?.close();
  await waitUntil(async () => {
    const sql = "select 1 from tunnels where connected_token_id = $1 and agent_connected";
    return (await api.sql(sql, [first.id])).length === 0;
  });
  const second = await mintToken(owner, { tunnelQuota: 3 });
  const attempts = await Promise.all(names.map((name) => connect(second, name)));
  const codes = attempts.filter(({ socket }) => !socket).map(({ code }) => code);
  expect(codes).toEqual([CLOSE.quota_exceeded, CLOSE.quota_exceeded, CLOSE.quota_exceeded]);
  const rows = await api.sql("select 1 from tunnels where subdomain like 'existing-%'");
  expect(rows).toHaveLength(6);
  for (const { socket } of attempts) socket?.close();
});

test("twenty agents that connect at once for one name with one token leave one, and use one tunnel", async () => {
  const token = await mintToken(owner, { tunnelQuota: 1 });
  const attempts = await Promise.all(Array.from({ length: 20 }, () => connect(token, "same-name")));
  for (const { code } of attempts) expect([undefined, CLOSE.replaced]).toContain(code);
  const open = await waitUntil(() => {
    const sockets = attempts.filter(({ socket }) => socket?.readyState === 1);
    return Promise.resolve(sockets.length === 1 && sockets);
  });
  expect(open).toHaveLength(1);
  open[0]?.socket?.close();
});

test("a tunnel whose object does not answer keeps its place, and another that no agent serves frees its own", async () => {
  const token = await mintToken(owner, { tunnelQuota: 2 });
  const ids = [crypto.randomUUID(), crypto.randomUUID()];
  await damageObject(api.server, "Tunnel", ids[0]!);
  for (const [n, id] of ids.entries()) {
    await api.sql(
      `insert into tunnels (id, org_id, project_id, name, subdomain, protocol, local_port, status, agent_connected,
         connected_token_id, last_seen_at)
       select $1, org_id, id, $2, $2, 'http', 1, 'active', true, $3, now() - interval '1 hour'
       from projects where org_id = $4`,
      [id, `stale-place-${n}`, token.id, owner.orgId],
    );
  }
  const { socket } = await connect(token, "free-place");
  expect(socket).toBeDefined();
  expect((await connect(token, "no-place")).code).toBe(CLOSE.quota_exceeded);
  socket?.close();
});

test("a server without billing refuses all its routes", async () => {
  const checkout = { plan: "pro" };
  for (const [path, body] of [
    ["/billing/checkout-session", checkout],
    ["/billing/portal", undefined],
    ["/billing/webhook", {}],
  ] as const) {
    const reply = await owner.post<{ error: string }>(path, body);
    expect([path, reply.status, reply.body.error]).toEqual([path, 402, "billing_not_configured"]);
  }
  expect(await owner.post("/billing/cancel")).toMatchObject({
    status: 405,
    body: {
      error: "method_not_allowed",
      message: expect.stringContaining("Billing is not configured"),
    },
  });
  expect((await owner.get<Billing>("/billing")).body).toMatchObject({
    mode: "none",
    plan: "enterprise",
    status: null,
    overLimits: [],
  });
  expect(await api.anonymous.get("/billing/mock/checkout?token=x")).toMatchObject({ status: 404 });
});
