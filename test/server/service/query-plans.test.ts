/**
 * No query reads more rows because an organization is large. Plans are those with which PostgreSQL really ran the queries of
 * every route and of the scheduled job, the ones for any values included, which it makes after some executions.
 */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createReceiver, deliver } from "../../harness/fakes/vendor.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { fillUniqueNames, generateExamples } from "../../harness/server/invalid-requests.ts";
import { fillDatabase } from "../../harness/database/large-organization.ts";
import {
  countRead,
  createPlanLoggingDir,
  listNodes,
  startPlanLog,
  type LoggedQuery,
  type PlanLog,
} from "../../harness/database/query-plans.ts";
import { createResources, type ResourceFinder } from "../../harness/server/resources.ts";
import {
  buildPath,
  formatRoute,
  isGuarded,
  readRoutes,
  requestStatus,
  type Route,
} from "../../harness/server/routes.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";

const SIZES = {
  organizations: 1_000,
  tunnels: 1_250,
  liveTunnels: 500,
  auditEvents: 5_000,
  rows: 1_500,
};
/** After five executions of a prepared statement, PostgreSQL considers a plan for any values. */
const EXECUTIONS = 7;
const PAGE_ROWS = 20;
/** A page, the rows that are joined to it, and those that a filter skips. */
const READ_MAX_ROWS = 400;

/** Queries about a whole organization: a part of their text, and what bounds the rows that they read. */
const WHOLE_ORGANIZATION: [part: string, bound: string][] = [
  ['from "traffic"', "the buckets of a window, for each tunnel that had traffic in them"],
  ['from "tunnel_counters"', "the tunnels until a day after their end"],
  ['from "token_usage" where ("token_usage"."org_id" =', "the tokens that were used in a month"],
  ['from "tunnels" where ("tunnels"."org_id" = $1 and', "ORGANIZATION_MAXIMA.tunnels"],
  ['from "tunnels" where (("tunnels"."org_id" = $1 and', "ORGANIZATION_MAXIMA.tunnels"],
  ["with admitted as (", "the same"],
  ['count from "tokens" where (("tokens"."org_id"', "ORGANIZATION_MAXIMA.capability_tokens"],
  ['select count(*) from "tokens" where ("tokens"."org_id"', "the same"],
  ['from "reserved_subdomains" where "reserved_subdomains"."org_id"', "the names of a plan"],
  ["strpos(lower(concat_ws", "AUDIT_SEARCH_MAX_EVENTS"],
  // It reads some organizations, chosen by chance: the large one is rarely among them.
  ["with counted as (", "AUDIT_EVENTS_OF_A_KIND_MAX of each kind"],
  ["->> 'deviceName' =", "the events that a sign-in is compared with"],
];

/**
 * These end, or compare with a budget, all that an organization or a project has. They are requested for a small organization:
 * that one's rows are few, and those of the others must not be read.
 */
const WHOLE_CHANGES = ["PUT /orgs/{id}/budget", "DELETE /projects/{slug}", "DELETE /orgs/{id}"];

let api: TestApi;
let dataDir: string;
let log: PlanLog;
let owner: Person;
let queries: LoggedQuery[];

beforeAll(async () => {
  dataDir = await createPlanLoggingDir();
  api = await startApi({ dataDir });
  owner = await api.owner();
  const findResource = await createResources(api, owner);
  await fillDatabase(api.sql, owner, SIZES);
  for (const statement of DUE_ROWS) await api.sql(statement);
  log = await startPlanLog(api);
  await requestLists(findResource);
  await serveVisitors();
  await log.mark("the scheduled job");
  await api.runCron();
  await requestChanges(findResource);
  await requestWholeChanges();
  queries = await log.read();
});
afterAll(async () => {
  await api.stop();
  await rm(dataDir, { recursive: true, force: true });
});

/** Some rows of each kind that the scheduled job deletes. */
const DUE_ROWS = [
  `update users set email_verified_at = null, created_at = now() - interval '1 year'
    where email like 'owner-_@filled.example'`,
  ...["sessions", "device_codes", "mfa_challenges", "invitations"].map(
    (table) =>
      `update ${table} set expires_at = now() - interval '1 year' where ctid = any(array(select ctid from ${table} order by ctid desc limit 3))`,
  ),
  `update tunnels set expires_at = now() - interval '1 hour'
    where id in (select id from tunnels where deleted_at is null and subdomain like 'filled-%' limit 3)`,
  `update tunnels set has_random_name = true, agent_connected = false, last_seen_at = now()
    where subdomain like 'filled-%'`,
  `update tunnels set last_seen_at = now() - interval '8 days'
    where id in (select id from tunnels where deleted_at is null and subdomain like 'filled-%' limit 3)`,
  `update tunnels set deleted_at = now() - interval '2 years'
    where id in (select id from tunnels where deleted_at is not null and subdomain like 'filled-%' limit 3)`,
  `update tokens set revoked_at = now() - interval '2 years'
    where id in (select id from tokens where name like 'Filled %' limit 3)`,
];

async function requestLists(findResource: ResourceFinder): Promise<void> {
  for (const route of await listRoutes("GET")) {
    await log.mark(formatRoute(route));
    const path = buildPath(route, route.path.includes("{") ? findResource(route) : {});
    for (const query of buildQueries(route)) {
      // Lists of captures ask the objects of a hundred tunnels, and no list decides what their query reads.
      const executions = /^.(inspector|metrics)/.test(route.path) ? 1 : EXECUTIONS;
      for (let times = 0; times < executions; times++) {
        const { status } = await owner.get(path + query);
        expect(status, path + query).not.toBe(500);
      }
    }
  }
}

async function listRoutes(method: string): Promise<Route[]> {
  return (await readRoutes(api)).filter((route) => isGuarded(route) && route.method === method);
}

/** The query strings with which a route is requested. */
function buildQueries({ path, parameters = [] }: Route): string[] {
  if (path === "/metrics/timeseries") return ["?metric=requests"];
  const isList = parameters.some(({ name }) => name === "limit");
  const page = isList ? `?limit=${PAGE_ROWS}` : "";
  if (path !== "/events") return [page];
  const filters = ["action=tunnel_created", "ip_address=203.0.113.1", "text=filled"];
  return [page, ...filters.map((filter) => `${page}&${filter}`)];
}

async function serveVisitors(): Promise<void> {
  await log.mark("POST /tokens");
  const { wireBytes } = await mintToken(owner);
  const receiver = await createReceiver(owner);
  const subdomains = Array.from({ length: EXECUTIONS }, (_, at) => `plans-${at}`);
  await log.mark("an agent connects");
  for (const subdomain of subdomains) {
    const { socket } = await api.connectAgent(wireBytes, { port: 1, subdomain });
    socket?.close();
  }
  await log.mark("a visitor of an offline tunnel");
  // At the same time, because each waits for an agent.
  await Promise.all(subdomains.map((subdomain) => visit(`${subdomain}.localhost`)));
  for (const subdomain of subdomains) {
    await log.mark("a visitor of an unknown name");
    await visit(`unknown-${subdomain}.localhost`);
    await log.mark("a webhook delivery");
    await deliver(api.server, receiver);
    await log.mark("a sign-in");
    await api.logIn(owner.email, owner.password);
  }
}

const visit = (host: string) =>
  exchange(api.server.port, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

/** Those that end what other requests need come last. */
const LAST_ROUTES = ["DELETE /auth/sessions/{id}", "POST /auth/logout"];

async function requestChanges(findResource: ResourceFinder): Promise<void> {
  const changes = (await Promise.all(["POST", "PUT", "PATCH", "DELETE"].map(listRoutes))).flat();
  const rank = (route: Route) => LAST_ROUTES.indexOf(formatRoute(route));
  for (const route of changes.toSorted((a, b) => rank(a) - rank(b))) {
    const name = formatRoute(route);
    if (WHOLE_CHANGES.includes(name)) continue;
    await log.mark(name);
    const values = route.path.includes("{") ? findResource(route) : {};
    await requestStatus(route, owner, values, buildBody(route));
  }
}

async function requestWholeChanges(): Promise<void> {
  await log.mark("a small organization");
  // The planner is told that a thousand rows have the same organization, which are a large part of a test's tables.
  await log.avoidWholeTables();
  const small = await api.owner();
  const findResource = await createResources(api, small);
  const routes = await readRoutes(api);
  for (const name of WHOLE_CHANGES) {
    const route = routes.find((candidate) => formatRoute(candidate) === name)!;
    await log.mark(name);
    const status = await requestStatus(route, small, findResource(route), buildBody(route));
    expect(status, name).toBeLessThan(300);
  }
}

function buildBody({ requestBody }: Route): unknown {
  const schema = requestBody?.content["application/json"]?.schema;
  if (schema === undefined) return undefined;
  return JSON.parse(fillUniqueNames(JSON.stringify(generateExamples(schema)[0])));
}

/** @returns what reads too many rows, with the tables that are read as a whole. */
function findViolations(isExamined: (during: string) => boolean): string[] {
  const found = new Set<string>();
  for (const { during, text, plan } of queries) {
    if (!isExamined(during)) continue;
    const sql = text.replace(/\s+/g, " ");
    if (WHOLE_ORGANIZATION.some(([part]) => sql.includes(part))) continue;
    const reading = listNodes(plan).filter((node) => countRead(node) > READ_MAX_ROWS);
    const how = reading.map((node) => `${node["Node Type"]} of ${node["Relation Name"]}`);
    if (reading.length > 0) found.add(`${during}: ${how.join(", ")}: ${sql}`);
  }
  return [...found];
}

const isList = (during: string) => during.startsWith("GET ");
const isChange = (during: string) => /^(POST|PUT|PATCH|DELETE) /.test(during);
const isOther = (during: string) => !isList(during) && !isChange(during);

test("a list reads about as many rows as its page has", () => {
  expect(findViolations(isList)).toEqual([]);
});

test("agents, visitors, deliveries, sign-ins and the scheduled job read only the rows that they concern", () => {
  expect(findViolations(isOther)).toEqual([]);
});

test("a change reads only the rows that it changes", () => {
  expect(findViolations(isChange)).toEqual([]);
});

test("every exception is needed", () => {
  const texts = queries.map(({ text }) => text.replace(/\s+/g, " "));
  const unused = WHOLE_ORGANIZATION.filter(([part]) => !texts.some((text) => text.includes(part)));
  expect(unused).toEqual([]);
});
