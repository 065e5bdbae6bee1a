/** Organizations of the stack's owner, written by SQL: a user may create 20, and the benchmarks need more, or large ones. */
import pg from "pg";
import { fillDatabase } from "../../test/harness/database/large-organization.ts";
import { callApi, type ApiCaller } from "../api.ts";
import type { BenchStack } from "../stack.ts";

/** The account of an access token. */
export interface Me {
  user: { id: string };
  active_org: { id: string };
}

/** Rows of the large organization. */
const LARGE_SIZES = {
  organizations: 100,
  tunnels: 10_000,
  liveTunnels: 10_000,
  auditEvents: 1_000_000,
  rows: 3_000,
};

/** Fills the organization of the stack's owner as years of use would. */
export async function fillOrganization(stack: BenchStack): Promise<void> {
  const { user, active_org: org } = await callApi<Me>(stack, "GET", "/auth/me");
  await withDatabase(stack, (client) =>
    fillDatabase((text) => client.query(text), { userId: user.id, orgId: org.id }, LARGE_SIZES),
  );
}

/** @returns callers with access tokens for this many organizations, the stack's own first. */
export async function createOrganizations(stack: BenchStack, count: number): Promise<ApiCaller[]> {
  const { user } = await callApi<Me>(stack, "GET", "/auth/me");
  const ids = await withDatabase(stack, async (client) => {
    const { rows } = await client.query<{ id: string }>(CREATE_ORGANIZATIONS, [count - 1, user.id]);
    return rows.map(({ id }) => id);
  });
  const others = ids.map(async (id) => {
    const path = `/orgs/${id}/switch`;
    const { access_token: accessToken } = await callApi<{ access_token: string }>(
      stack,
      "POST",
      path,
    );
    return { server: stack.server, accessToken };
  });
  return [stack, ...(await Promise.all(others))];
}

const CREATE_ORGANIZATIONS = `
  with created as (
    insert into organizations (name, slug, plan, approval_status)
    select 'Benchmark', 'benchmark-' || n, 'pro', 'approved' from generate_series(1, $1::int) as n returning id),
  joined as (insert into memberships (user_id, org_id, role) select $2, id, 'owner' from created),
  given as (
    insert into projects (org_id, slug, name, is_default) select id, 'default', 'Default', true from created)
  select id from created`;

async function withDatabase<Result>(
  { server }: BenchStack,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(await server.databaseUrl());
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
