/**
 * The only access to PostgreSQL: Neon when hosted, otherwise the gateway of the self-hosted server, which speaks Neon's
 * protocol in front of any PostgreSQL. Single statements use the driver's HTTP mode. Transactions use its WebSocket mode
 * with a connection each: a Worker may not use a socket that another request opened.
 */
import { waitUntil } from "cloudflare:workers";
import { Client, neon, neonConfig } from "@neondatabase/serverless";
import { fillPlaceholders, type Query } from "drizzle-orm";
import { NeonHttpDatabase, NeonHttpDriver } from "drizzle-orm/neon-http";
import { NeonDatabase, NeonDriver } from "drizzle-orm/neon-serverless";
import { PgDialect } from "drizzle-orm/pg-core";
import { log } from "../../shared/log.ts";
import { DatabaseOutageError, isTransactionConflict } from "../database-outage.ts";
import type { Env } from "../env.ts";
import { describeError } from "../errors.ts";
import { formatApplicationName } from "../../protocol/application-name.ts";
import type { AuditAction } from "../../protocol/audit/audit-actions.ts";
import { insertAuditEvents, toAuditEvent, type Actor } from "./audit.ts";
import type { AuditEvent } from "./tables/audit.ts";
import { GatewaySocket } from "./gateway-socket.ts";
import { lockCaller, type CallerActor } from "./locks.ts";
import type { Queries, Transaction } from "./transaction.ts";
import { insertOutbox } from "./outbox.ts";
import { StatementBatch } from "./statement-batch.ts";
import type { OutboxMessage, OutboxRow } from "./outbox-messages.ts";

/** One change: its rows, its audit events and its outbox messages commit together or not at all. */
export interface UnitOfWork {
  tx: Transaction;
  audit: (
    actor: Actor,
    action: AuditAction,
    resourceId: string,
    metadata?: Record<string, unknown>,
  ) => void;
  /** The message is delivered after the commit, and retried until it is delivered. */
  enqueue: (message: OutboxMessage) => void;
  /** Rolls the transaction back and makes `value` its result. */
  rollback: <Value>(value: Value) => Value;
}

type Work<Result> = (change: UnitOfWork) => Result | Promise<Result>;

interface ChangeOptions {
  /** Throws `UndeliveredError` after the commit unless all outbox messages were delivered. */
  requireDelivery: boolean;
}

export interface Database {
  /** Single statements, each a transaction of its own. */
  query: Queries;
  /** Runs a statement of `prepared`, whose rows are arrays. */
  run: (text: string, params: unknown[]) => Promise<unknown>;
  /**
   * Sends statements of `prepared` that only read in one request, each of which sees what is committed when it starts.
   * @param read starts them before it waits for any. What it runs later is sent by itself.
   */
  batch<Result>(read: (batched: Database) => Promise<Result>): Promise<Result>;
  /**
   * @param work is called a second time when PostgreSQL has aborted the first transaction because of another one: so it must
   * change nothing but rows.
   */
  transaction<Result>(work: Work<Result>, options?: ChangeOptions): Promise<Result>;
  /**
   * A transaction that first locks the actor's role or token, as the route's guard read it.
   * @throws PermissionLostError when it has changed since.
   */
  changeAs<Result>(
    actor: CallerActor,
    work: Work<Result>,
    options?: ChangeOptions,
  ): Promise<Result>;
  /** For messages that a statement of `query` has inserted. */
  deliver: Deliver;
}

/** The change has committed, but not all of its messages were delivered yet: delivery is retried. */
export class UndeliveredError extends Error {
  override name = "UndeliveredError";

  constructor() {
    super("the change is committed, and some of its messages are not delivered yet");
  }
}

/** Delivers the messages of a committed change. Must not throw. @returns whether all were delivered. */
export type Deliver = (rows: OutboxRow[]) => Promise<boolean>;

/** It remembers the names of columns. */
const DIALECT = new PgDialect({ casing: "snake_case" });

/** @param caller for whom the statements run (`formatApplicationName`): callers share the gateway's connections. */
export function connectDatabase(env: Env, deliver: Deliver, caller?: string): Database {
  const connectionString = getUrlPrefix(env) + encodeURIComponent(formatApplicationName(caller));
  const sqlOverHttp = neon(connectionString);
  const session = new NeonHttpDriver(sqlOverHttp, DIALECT).createSession(undefined);

  function transaction<Result>(work: Work<Result>, options?: ChangeOptions): Promise<Result> {
    const done = commit(connectionString, work, deliver, options);
    // Committed messages are delivered even if the caller disconnects first.
    waitUntil(done.catch(() => undefined));
    return done;
  }
  const db: Database = {
    query: new NeonHttpDatabase(DIALECT, session, undefined),
    run: (text, params) => session.query(text, params),
    batch(read) {
      const statements = new StatementBatch();
      const result = read({
        ...db,
        run: (text, params) =>
          statements.isSent ? db.run(text, params) : statements.add(text, params),
      });
      statements.send(sqlOverHttp);
      return result;
    },
    transaction,
    changeAs: (actor, work, options) =>
      transaction(async (change) => {
        await lockCaller(change.tx, actor);
        return work(change);
      }, options),
    deliver(rows) {
      const done = deliver(rows);
      // Even if the caller disconnects first.
      waitUntil(done);
      return done;
    },
  };
  return db;
}

/** Thrown by `UnitOfWork.rollback`, so that the driver rolls the transaction back. */
class Rollback extends Error {
  override name = "Rollback";
  readonly value: unknown;

  constructor(value: unknown) {
    super("the change was rolled back");
    this.value = value;
  }
}

async function commit<Result>(
  connectionString: string,
  work: Work<Result>,
  deliver: Deliver,
  options: ChangeOptions | undefined,
): Promise<Result> {
  const run = () => runTransaction(new Client({ connectionString }), work);
  const committed = await run().catch((thrown: unknown) => {
    if (!isTransactionConflict(thrown)) throw thrown;
    log("warn", "transaction_repeated", { cause: describeError(thrown) });
    return run();
  });
  if ("rolledBack" in committed) return committed.rolledBack;
  const isDelivered = await deliver(committed.messages);
  if (options?.requireDelivery && !isDelivered) throw new UndeliveredError();
  return committed.result;
}

async function runTransaction<Result>(
  client: Client,
  work: Work<Result>,
): Promise<{ result: Result; messages: OutboxRow[] } | { rolledBack: Result }> {
  let isLost = false;
  client.on("error", () => (isLost = true));
  try {
    await client.connect();
    const session = new NeonDriver(client, DIALECT).createSession(undefined);
    return await new NeonDatabase(DIALECT, session, undefined).transaction(async (tx) => {
      const events: AuditEvent[] = [];
      const messages: OutboxMessage[] = [];
      const result = await work({
        tx,
        audit: (...event) => void events.push(toAuditEvent(...event)),
        enqueue: (message) => void messages.push(message),
        rollback: (value) => {
          throw new Rollback(value);
        },
      });
      await insertAuditEvents(tx, events);
      return { result, messages: await insertOutbox(tx, messages) };
    });
  } catch (thrown) {
    if (thrown instanceof Rollback) return { rolledBack: thrown.value as Result };
    if (!isLost) throw thrown;
    throw new DatabaseOutageError("the connection was lost in a transaction", { cause: thrown });
  } finally {
    // The connection is closed before the delivery, which may take long: other requests wait for a connection.
    waitUntil(client.end().catch(() => undefined));
  }
}

/** Drizzle's prepared statement. Its own `execute` would run it for the caller for whom it was built. */
export interface PreparedStatement<Rows> {
  getQuery(): Query;
  mapResult(result: unknown): unknown;
  execute(values: Record<string, unknown>): Promise<Rows>;
}

/** For frequent statements that return rows: their SQL is built once per isolate. */
export function prepared<Rows>(
  build: (query: Queries) => PreparedStatement<Rows>,
): (db: Database, values: Record<string, unknown>) => Promise<Rows> {
  let statement: PreparedStatement<Rows> | undefined;
  return async ({ query, run }, values) => {
    statement ??= build(query);
    const { sql, params } = statement.getQuery();
    return statement.mapResult(await run(sql, fillPlaceholders(params, values))) as Rows;
  };
}

/** For each environment that the driver is configured for, the URL of its database, which lacks its last value only. */
const urlPrefixes = new WeakMap<Env, string>();

/** @returns the URL of the database up to the value of `application_name`. */
function getUrlPrefix(env: Env): string {
  const known = urlPrefixes.get(env);
  if (known !== undefined) return known;
  configureDriver(env);
  const url = new URL(env.DATABASE_URL);
  url.searchParams.delete("application_name");
  url.searchParams.append("application_name", "");
  urlPrefixes.set(env, url.href);
  return url.href;
}

/** The driver's settings are global, like the environment of an isolate. */
function configureDriver(env: Env): void {
  const { DATABASE_GATEWAY: gateway, GATEWAY_URL: gatewayUrl } = env;
  if (gateway) {
    neonConfig.fetchEndpoint = "http://gateway/sql";
    neonConfig.fetchFunction = (url: string, init: RequestInit) => gateway.fetch(url, init);
    const open = () => gateway.fetch("http://gateway/v2", { headers: { Upgrade: "websocket" } });
    neonConfig.wsProxy = () => "gateway/v2";
    neonConfig.webSocketConstructor = class extends GatewaySocket {
      constructor() {
        super(open());
      }
    };
  } else if (gatewayUrl !== undefined) {
    const { origin, host } = new URL(gatewayUrl);
    neonConfig.fetchEndpoint = `${origin}/sql`;
    neonConfig.wsProxy = () => `${host}/v2`;
    neonConfig.useSecureWebSocket = origin.startsWith("https:");
  }
}
