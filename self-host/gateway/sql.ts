/**
 * `POST /sql`, the HTTP mode of Neon's driver: one query, or several in one transaction. Values travel as
 * the text that PostgreSQL writes them in (`Neon-Raw-Text-Output`), which is all that the driver asks for.
 */
import type { IncomingHttpHeaders } from "node:http";
import pg from "pg";
import { z } from "zod";
import { messageOf } from "../failure.ts";
import { type Answer, errorAnswer } from "./answer.ts";
import { type Backend, isBroken } from "./backend.ts";
import { isStalePlan, type Query, runQuery } from "./statements.ts";

const GATEWAY_BATCH_MAX_QUERIES = 1_000;

const OneQuery = z.object({
  query: z.string(),
  params: z.array(z.unknown()).default([]),
  arrayMode: z.boolean().optional(),
});
const Batch = z.object({ queries: z.array(OneQuery).max(GATEWAY_BATCH_MAX_QUERIES) });
const Body = z.union([OneQuery, Batch]);

const ISOLATION_LEVELS: Record<string, string> = {
  ReadUncommitted: "read uncommitted",
  ReadCommitted: "read committed",
  RepeatableRead: "repeatable read",
  Serializable: "serializable",
};

export async function answerSql(
  pool: pg.Pool,
  headers: IncomingHttpHeaders,
  text: string,
): Promise<Answer> {
  if (headers["neon-raw-text-output"] !== "true") {
    return errorAnswer(400, "only raw text output is spoken here: set Neon-Raw-Text-Output");
  }
  const body = parse(text);
  if (!body) return errorAnswer(400, "the body must be {query, params} or {queries}");
  const arrayMode = headers["neon-array-mode"] === "true";
  const toQuery = (one: z.output<typeof OneQuery>): Query => ({
    text: one.query,
    params: one.params,
    arrayMode: one.arrayMode ?? arrayMode,
  });

  let backend: Backend & pg.PoolClient;
  try {
    backend = (await pool.connect()) as Backend & pg.PoolClient;
  } catch (error) {
    return errorAnswer(503, `the database can't be reached: ${messageOf(error)}`);
  }
  let broken = false;
  try {
    if ("query" in body) return ok(await runAlone(backend, toQuery(body)));
    const begin = beginStatement(headers);
    if (begin === undefined) return errorAnswer(400, "unknown isolation level");
    const results = await runTogether(backend, begin, body.queries.map(toQuery));
    return { ...ok({ results }), headers: echoed(headers) };
  } catch (error) {
    broken = isBroken(error);
    return databaseError(error);
  } finally {
    backend.release(broken);
  }
}

function parse(text: string): z.output<typeof Body> | undefined {
  try {
    return Body.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

async function runAlone(backend: Backend, query: Query): Promise<object> {
  try {
    return resultOf(await runQuery(backend, query), query);
  } catch (error) {
    if (!isStalePlan(error)) throw error;
    return resultOf(await runQuery(backend, query), query);
  }
}

async function runTogether(backend: Backend, begin: string, queries: Query[]): Promise<object[]> {
  await backend.query(begin);
  try {
    const results: object[] = [];
    for (const query of queries) results.push(resultOf(await runQuery(backend, query), query));
    await backend.query("commit");
    return results;
  } catch (error) {
    if (!isBroken(error)) await backend.query("rollback");
    throw error;
  }
}

function beginStatement(headers: IncomingHttpHeaders): string | undefined {
  const parts = ["begin"];
  const level = headers["neon-batch-isolation-level"];
  if (level !== undefined) {
    const isolation = Object.hasOwn(ISOLATION_LEVELS, String(level))
      ? ISOLATION_LEVELS[String(level)]
      : undefined;
    if (isolation === undefined) return undefined;
    parts.push(`isolation level ${isolation}`);
  }
  if (headers["neon-batch-read-only"] === "true") parts.push("read only");
  if (headers["neon-batch-deferrable"] === "true") parts.push("deferrable");
  return parts.join(" ");
}

const BATCH_HEADERS = [
  "neon-batch-isolation-level",
  "neon-batch-read-only",
  "neon-batch-deferrable",
];

function echoed(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    BATCH_HEADERS.filter((name) => headers[name] !== undefined).map((name) => [
      name,
      String(headers[name]),
    ]),
  );
}

function resultOf(
  { fields, command, rowCount, rows }: pg.QueryResult | pg.QueryArrayResult,
  { arrayMode }: Query,
): object {
  // pg's fields have exactly the names that the driver knows.
  return { fields, command, rowCount, rows, rowAsArray: arrayMode };
}

function ok(value: object): Answer {
  return { status: 200, body: JSON.stringify(value) };
}

function databaseError(error: unknown): Answer {
  if (!(error instanceof pg.DatabaseError)) return errorAnswer(503, messageOf(error));
  // The message is no property of its own, the fields from PostgreSQL are.
  return { status: 400, body: JSON.stringify({ ...error, message: error.message }) };
}
