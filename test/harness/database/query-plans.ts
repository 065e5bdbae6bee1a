/** Reads the plans with which a server's PostgreSQL ran its queries, from the log of its module `auto_explain`. */
import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createPreparedDir } from "../directories.ts";
import { waitUntil, type TestApi } from "../server/api.ts";

/** A node of a plan, as `EXPLAIN (ANALYZE, FORMAT JSON)` describes it. */
export interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  Plans?: PlanNode[];
}

export function listNodes(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(listNodes)];
}

/** The rows that a node of a plan reads from a table. */
export function countRead(node: PlanNode): number {
  if (node["Relation Name"] === undefined || node["Node Type"] === "ModifyTable") return 0;
  const removed = node["Rows Removed by Filter"] ?? 0;
  return (node["Actual Rows"] + removed) * node["Actual Loops"];
}

export interface LoggedQuery {
  /** What the test was doing, as `mark` was told. */
  during: string;
  text: string;
  plan: PlanNode;
}

const SETTINGS = {
  logging_collector: "on",
  log_destination: "jsonlog",
  log_directory: "log",
  session_preload_libraries: "auto_explain",
  // As on a solid-state disk: then a table of thousands of rows is large enough for an index.
  random_page_cost: "1.1",
  "auto_explain.log_min_duration": "0",
  "auto_explain.log_analyze": "on",
  "auto_explain.log_timing": "off",
  // The checks of foreign keys are statements too.
  "auto_explain.log_nested_statements": "on",
  "auto_explain.log_format": "json",
};

/** @returns the data directory for a server whose PostgreSQL logs plans. */
export async function createPlanLoggingDir(): Promise<string> {
  const dataDir = await createPreparedDir();
  const lines = Object.entries(SETTINGS).map(([name, value]) => `${name} = '${value}'\n`);
  await appendFile(join(dataDir, "postgres/postgresql.auto.conf"), lines.join(""));
  return dataDir;
}

export interface PlanLog {
  /** Names what the test does from now on. */
  mark(during: string): Promise<void>;
  /** From now on, plans read a table as a whole only if no index helps. */
  avoidWholeTables(): Promise<void>;
  /** @returns the queries since the first mark, in the order in which they were run. */
  read(): Promise<LoggedQuery[]>;
}

const MARK = /^select \/\* mark \*\/ '(.*)'$/s;

/** Logs the plans of all connections that are opened from now on, and closes those of the server. */
export async function startPlanLog({ sql, server }: TestApi): Promise<PlanLog> {
  const log = join(server.dataDir, "postgres/log");
  // The server's own setting, which is an argument of its process, logs failures only.
  await sql("alter role current_user set log_min_messages = 'log'");
  await sql("set log_min_messages = 'log'");
  await closeConnections(sql);
  const mark = async (during: string) => {
    await sql(`select /* mark */ '${during.replaceAll("'", "''")}'`);
  };
  return {
    mark,
    async avoidWholeTables() {
      await sql("alter role current_user set enable_seqscan = off");
      await closeConnections(sql);
    },
    async read() {
      const end = `end ${crypto.randomUUID()}`;
      await mark(end);
      const text = await waitUntil(async () => {
        const files = (await readdir(log)).filter((name) => name.endsWith(".json")).sort();
        const texts = await Promise.all(files.map((file) => readFile(join(log, file), "utf8")));
        const whole = texts.join("");
        return whole.includes(end) && whole.slice(0, whole.lastIndexOf("\n"));
      });
      return parse(text);
    },
  };
}

/**
 * The server opens new ones, which have the current settings of the role. Returns when the connections are closed, so that no
 * later request is sent over one of them.
 */
async function closeConnections(sql: TestApi["sql"]): Promise<void> {
  const others =
    "from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
  await sql(`select pg_terminate_backend(pid, 60000) ${others}`);
}

function parse(log: string): LoggedQuery[] {
  const queries: LoggedQuery[] = [];
  let during: string | undefined;
  for (const line of log.split("\n")) {
    const { message } = JSON.parse(line) as { message?: string };
    const [, json] = /^duration: [\d.]+ ms {2}plan:\n(.*)$/s.exec(message ?? "") ?? [];
    if (json === undefined) continue;
    const { "Query Text": text, Plan: plan } = JSON.parse(json) as {
      "Query Text": string;
      Plan: PlanNode;
    };
    const [, mark] = MARK.exec(text) ?? [];
    if (mark !== undefined) during = mark;
    else if (during !== undefined) queries.push({ during, text, plan });
  }
  return queries;
}
