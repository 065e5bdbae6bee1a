/** Which audit events the scheduled job removes, and which neither it nor any other program can. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { AUDIT_EVENTS_OF_A_KIND_MAX } from "../../../workers/store/organizations/audit-retention.ts";
import { startApi, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
// A server of its own, because the job counts the events of a part of the organizations at a time.
beforeAll(async () => (api = await startApi({ shared: false })));
afterAll(() => api.stop());

const insert = (orgId: string, action: string, { count = 1, days = 0 }) =>
  api.sql(
    `insert into audit_events (org_id, action, resource_type, resource_id, created_at)
     select $1, $2, 'test', n::text, now() - $3 * interval '1 day' - n * interval '1 millisecond'
     from generate_series(1, $4) n`,
    [orgId, action, days, count],
  );

/** @returns how many events of an action there are, by their age in days. */
async function countByAge(orgId: string, action: string): Promise<Record<number, number>> {
  const rows = await api.sql<{ days: number; count: number }>(
    `select extract(day from now() - created_at)::int as days, count(*)::int as count
     from audit_events where org_id = $1 and action = $2 group by days`,
    [orgId, action],
  );
  return Object.fromEntries(rows.map(({ days, count }) => [days, count]));
}

test("events are removed after 400 days, those of users without an organization too", async () => {
  const { orgId } = await api.owner();
  for (const days of [399, 401]) await insert(orgId, "token_created", { days });
  await api.sql(
    `insert into audit_events (user_id, action, resource_type, resource_id, created_at)
     values (gen_random_uuid(), 'mfa_failed', 'user', 'old', now() - interval '401 days')`,
  );
  await api.runCron();
  expect(await countByAge(orgId, "token_created")).toEqual({ 399: 1 });
  expect(await api.sql("select 1 from audit_events where resource_id = 'old'")).toEqual([]);
});

test("events of the daily use of tunnels are removed beyond the newest of their kind, of one organization", async () => {
  const [flooded, other] = [await api.owner(), await api.owner()];
  await insert(flooded.orgId, "tunnel_created", { count: AUDIT_EVENTS_OF_A_KIND_MAX });
  for (const { orgId } of [flooded, other]) {
    for (const action of ["tunnel_created", "tunnel_stopped"]) {
      await insert(orgId, action, { count: 5, days: 2 });
    }
  }
  await api.runCron();
  expect(await countByAge(flooded.orgId, "tunnel_created")).toEqual({
    0: AUDIT_EVENTS_OF_A_KIND_MAX,
  });
  expect(await countByAge(flooded.orgId, "tunnel_stopped")).toEqual({ 2: 5 });
  expect(await countByAge(other.orgId, "tunnel_created")).toEqual({ 2: 5 });
});

test("a flood of events pushes out no event about security within its first 30 days", async () => {
  const { orgId } = await api.owner();
  await insert(orgId, "token_created", { count: AUDIT_EVENTS_OF_A_KIND_MAX });
  await insert(orgId, "token_created", { count: 5, days: 29 });
  await insert(orgId, "token_created", { count: 5, days: 31 });
  await insert(orgId, "member_removed", { days: 31 });
  await api.runCron();
  expect(await countByAge(orgId, "token_created")).toEqual({
    0: AUDIT_EVENTS_OF_A_KIND_MAX,
    29: 5,
  });
  expect(await countByAge(orgId, "member_removed")).toEqual({ 31: 1 });
});

test("the database removes no event about security of the last 30 days, and changes none", async () => {
  const { orgId } = await api.owner();
  await insert(orgId, "token_created", { days: 29 });
  await insert(orgId, "token_created", { days: 31 });
  await insert(orgId, "tunnel_created", { days: 1 });
  const change = (statement: string, days: number) =>
    api.sql(
      `${statement} where org_id = $1 and action like '%_created' and created_at < now() - $2 * interval '1 day'`,
      [orgId, days],
    );
  await expect(change("delete from audit_events", 28)).rejects.toThrow("append-only");
  await expect(change("update audit_events set action = 'x'", 30)).rejects.toThrow("append-only");
  await change("delete from audit_events", 30);
  expect(await countByAge(orgId, "token_created")).toEqual({ 29: 1 });
  await api.sql("delete from audit_events where org_id = $1 and action = 'tunnel_created'", [
    orgId,
  ]);
  expect(await countByAge(orgId, "tunnel_created")).toEqual({});
});
