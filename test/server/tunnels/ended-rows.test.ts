/** How long the rows of ended tunnels, tokens and projects are stored. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => (api = await startApi()));
afterAll(() => api.stop());

async function createTunnel(owner: Person): Promise<string> {
  const { body } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  return body.id;
}

const listIds = async (table: string, orgId: string) =>
  (await api.sql<{ id: string }>(`select id from ${table} where org_id = $1`, [orgId])).map(
    ({ id }) => id,
  );

/** Moves the end of a row into the past. */
const age = (table: string, id: string, column: string, days: number) =>
  api.sql(`update ${table} set ${column} = now() - $2 * interval '1 day' where id = $1`, [
    id,
    days,
  ]);

test("a tunnel's row and what was spent with it are deleted 400 days after its end", async () => {
  const owner = await api.owner();
  const [recent, old, expired, live] = [
    await createTunnel(owner),
    await createTunnel(owner),
    await createTunnel(owner),
    await createTunnel(owner),
  ];
  for (const id of [recent, old]) await owner.delete(`/tunnels/${id}`);
  await age("tunnels", recent, "deleted_at", 399);
  await age("tunnels", old, "deleted_at", 401);
  await age("tunnels", expired, "expires_at", 401);
  const { nonce } = await mintToken(owner, { name: "laptop" });
  await api.sql(
    `insert into token_usage (token_id, org_id, month, tunnel_id, bytes, requests)
     select id, org_id, '2025-01', $2, 1, 1 from tokens where nonce = $1`,
    [nonce, old],
  );
  // The first run expires the tunnel, and the second finds that it ended long ago.
  await api.runCron();
  await api.runCron();
  expect((await listIds("tunnels", owner.orgId)).toSorted()).toEqual([recent, live].toSorted());
  expect(await api.sql("select 1 from token_usage where tunnel_id = $1", [old])).toEqual([]);
});

test("a tunnel is listed until seven days after its expiry, and its row remains", async () => {
  const owner = await api.owner();
  const [recent, old] = [await createTunnel(owner), await createTunnel(owner)];
  await age("tunnels", recent, "expires_at", 6);
  await age("tunnels", old, "expires_at", 8);
  // The first run may only expire them.
  await api.runCron();
  await api.runCron();
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  expect(body.map(({ id, status }) => [id, status])).toEqual([[recent, "expired"]]);
  const [row] = await api.sql(
    "select status, deleted_at = expires_at as has_same_end from tunnels where id = $1",
    [old],
  );
  expect(row).toEqual({ status: "expired", has_same_end: true });
  const { body: events } = await owner.get<{ action: string }[]>("/events?action=tunnel_deleted");
  expect(events).toEqual([]);
});

test("a project's row is deleted 400 days after its end, unless another row needs it", async () => {
  const owner = await api.owner();
  const createProject = async (slug: string) => {
    const { body } = await owner.post<{ id: string }>("/projects", { slug, name: slug });
    return body.id;
  };
  const [live, recent, old, needed] = [
    await createProject("live"),
    await createProject("recent"),
    await createProject("old"),
    await createProject("needed"),
  ];
  await owner.post("/projects/needed/tokens", { name: "job" });
  for (const slug of ["recent", "old", "needed"]) await owner.delete(`/projects/${slug}`);
  await age("projects", recent, "deleted_at", 399);
  for (const id of [old, needed]) await age("projects", id, "deleted_at", 401);
  await api.runCron();
  const left = await listIds("projects", owner.orgId);
  expect([live, recent, old, needed].map((id) => left.includes(id))).toEqual([
    true,
    true,
    false,
    true,
  ]);
});

test("a token's row is deleted 400 days after its end, unless another row needs it", async () => {
  const owner = await api.owner();
  const mint = async (name: string) => {
    const { nonce } = await mintToken(owner, { name });
    const [row] = await api.sql<{ id: string }>("select id from tokens where nonce = $1", [nonce]);
    return row!.id;
  };
  const [recent, expired, revoked, serving] = [
    await mint("recent"),
    await mint("expired"),
    await mint("revoked"),
    await mint("serving"),
  ];
  await age("tokens", recent, "expires_at", 399);
  await age("tokens", expired, "expires_at", 401);
  await age("tokens", revoked, "revoked_at", 401);
  await age("tokens", serving, "revoked_at", 401);
  const tunnelId = await createTunnel(owner);
  await api.sql("update tunnels set connected_token_id = $2 where id = $1", [tunnelId, serving]);
  await api.runCron();
  const left = await listIds("tokens", owner.orgId);
  expect([recent, expired, revoked, serving].map((id) => left.includes(id))).toEqual([
    true,
    false,
    false,
    true,
  ]);
});
