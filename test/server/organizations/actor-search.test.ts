/** The audit log of a large organization, searched for the events of one of its members. */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import {
  countRead,
  createPlanLoggingDir,
  listNodes,
  startPlanLog,
  type PlanLog,
} from "../../harness/database/query-plans.ts";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";

/** After five executions of a prepared statement, PostgreSQL considers a plan for any values. */
const EXECUTIONS = 7;
const PAGE_ROWS = 20;

let api: TestApi;
let dataDir: string;
let log: PlanLog;
let owner: Person;
let rare: Person;

beforeAll(async () => {
  dataDir = await createPlanLoggingDir();
  api = await startApi({ dataDir });
  [owner, rare] = [await api.owner(), await api.owner()];
  // Nearly all events are of one user, so that the planner expects to find any user's events soon.
  await api.sql(
    `insert into audit_events (org_id, user_id, action, resource_type, resource_id, created_at)
      select $1, $2, 'tunnel_created', 'tunnel', n::text, now() - n * interval '1 minute'
      from generate_series(1, 200000) as n`,
    [owner.orgId, owner.userId],
  );
  await api.sql("vacuum analyze audit_events");
  log = await startPlanLog(api);
});
afterAll(async () => {
  await api.stop();
  await rm(dataDir, { recursive: true, force: true });
});

test.each([
  ["by id, without events", () => rare.userId, 0],
  ["by email address, without events", () => rare.email, 0],
  ["by an email address without an account", () => "no-one@actors.example", 0],
  ["by id, with many events", () => owner.userId, PAGE_ROWS],
  ["by email address, with many events", () => owner.email, PAGE_ROWS],
])(
  "an actor that is given %s is found without reading the others' events",
  async (name, getActor, rows) => {
    await log.mark(name);
    for (let times = 0; times < EXECUTIONS; times += 1) {
      const path = `/events?limit=${PAGE_ROWS}&actor=${getActor()}`;
      const { body } = await owner.get<AuditEvent[]>(path);
      expect(body).toHaveLength(rows);
    }
    const queries = (await log.read()).filter(({ during }) => during === name);
    const lists = queries.filter(({ text }) => text.includes('from "audit_events"'));
    expect(lists).toHaveLength(EXECUTIONS);
    const readRows = lists.flatMap(({ plan }) => listNodes(plan).map(countRead));
    expect(Math.max(...readRows)).toBeLessThanOrEqual(4 * PAGE_ROWS);
  },
);
