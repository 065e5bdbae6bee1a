/** Every list of the API, requested for a large organization. */
import { readRoutes, type Route } from "../../test/harness/server/routes.ts";
import { callApi, type ApiCaller } from "../api.ts";
import type { Row } from "../report.ts";
import { percentile, round } from "../statistics.ts";

/** How many requests for each list are measured, one after the other. */
const REQUESTS = 40;
/** Not measured: the first ones prepare statements. */
const WARM_UP_REQUESTS = 10;

/** @returns the response times of each route that lists something and needs no resource but the organization. */
export async function measureLists(caller: ApiCaller, orgId: string): Promise<Row[]> {
  const get = async <Body>(path: string) => ({ body: await callApi<Body>(caller, "GET", path) });
  const routes = await readRoutes({ anonymous: { get } } as Parameters<typeof readRoutes>[0]);
  const rows: Row[] = [];
  for (const route of routes.filter(isList)) {
    const path = route.path.replace("/orgs/{id}", `/orgs/${orgId}`).replace("{slug}", "default");
    if (!path.includes("{")) rows.push(await measureList(caller, path));
  }
  return rows;
}

/** The traffic of a period and the archive are no lists of rows, but as long as one. */
const LONG_ANSWERS = ["/metrics", "/metrics/timeseries", "/metrics/usage", "/inspector/har"];

function isList({ method, path, security, responses }: Route): boolean {
  const answer = responses["200"];
  const content = answer && "content" in answer ? answer.content : undefined;
  const schema = content?.["application/json"]?.schema as { type?: unknown } | undefined;
  const isGuarded = security.some((scheme) => "accessToken" in scheme);
  return method === "GET" && isGuarded && (schema?.type === "array" || LONG_ANSWERS.includes(path));
}

async function measureList(caller: ApiCaller, path: string): Promise<Row> {
  const query = path === "/metrics/timeseries" ? "?metric=requests" : "";
  const times: number[] = [];
  let body: unknown;
  for (let i = 0; i < WARM_UP_REQUESTS + REQUESTS; i++) {
    const startedAt = performance.now();
    body = await callApi(caller, "GET", path + query);
    if (i >= WARM_UP_REQUESTS) times.push(performance.now() - startedAt);
  }
  return {
    group: "lists of a large organization",
    path,
    rows: Array.isArray(body) ? body.length : 0,
    KiB: round(JSON.stringify(body).length / 1024),
    "p50 ms": round(percentile(times, 0.5), 1),
    "p95 ms": round(percentile(times, 0.95), 1),
  };
}
