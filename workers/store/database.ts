/**
 * The one door to PostgreSQL: Neon when hosted, the gateway of the self-hosted server (which speaks Neon's
 * protocol in front of any PostgreSQL) otherwise. Single reads go over the driver's HTTP mode, changes over
 * its WebSocket mode, one connection each: a Worker may not use a socket that another request opened.
 */
import { waitUntil } from "cloudflare:workers";
import { Client, neon, neonConfig } from "@neondatabase/serverless";
import { drizzle as drizzleHttp } from "drizzle-orm/neon-http";
import { drizzle as drizzleSocket } from "drizzle-orm/neon-serverless";
import type { Env } from "../env.ts";
import { insertAuditEvents, type AuditEvent } from "./audit.ts";
import { GatewaySocket } from "./gateway-socket.ts";
import type { Queries, Transaction } from "./transaction.ts";
import { insertOutbox, type OutboxMessage, type OutboxRow } from "./outbox.ts";

/** One change: its rows, its audit events and what must be told of it commit together or not at all. */
export interface Change {
  tx: Transaction;
  audit: (event: AuditEvent) => void;
  /** Delivered after the commit, however often that takes. */
  tell: (message: OutboxMessage) => void;
  /** Undoes everything; `value` becomes the change's result. */
  abandon: <Value>(value: Value) => Value;
}

export interface Database {
  read: Queries;
  change<Result>(work: (change: Change) => Promise<Result>): Promise<Result>;
  /** The same, for whoever must not say "done" before everybody who is told knows. */
  changeAndTell<Result>(work: (change: Change) => Promise<Result>): Promise<Told<Result>>;
}

export interface Told<Result> {
  result: Result;
  /** Otherwise the change is made, and telling of it goes on. */
  arrived: boolean;
}

/** What happens to the messages of a change that has just committed. Must not throw. Whether all arrived. */
export type Deliver = (rows: OutboxRow[]) => Promise<boolean>;

const OPTIONS = { casing: "snake_case" } as const;

export function connect(env: Env, deliver: Deliver): Database {
  function changeAndTell<Result>(work: (change: Change) => Promise<Result>): Promise<Told<Result>> {
    const done = runChange(env, work, deliver);
    // A caller who hangs up in the middle must not leave messages of a commit undelivered.
    waitUntil(done.catch(() => undefined));
    return done;
  }
  return {
    read: readerOf(env),
    changeAndTell,
    change: async (work) => (await changeAndTell(work)).result,
  };
}

/** What the transaction's callback throws to have it rolled back. */
class Abandoned extends Error {
  override name = "Abandoned";
  readonly value: unknown;

  constructor(value: unknown) {
    super("the change was abandoned");
    this.value = value;
  }
}

async function runChange<Result>(
  env: Env,
  work: (change: Change) => Promise<Result>,
  deliver: Deliver,
): Promise<Told<Result>> {
  const client = new Client(env.DATABASE_URL);
  // A connection that breaks fails its query too, which is where it is handled.
  client.on("error", () => undefined);
  let done: { result: Result; told: OutboxRow[] };
  try {
    await client.connect();
    done = await drizzleSocket(client, OPTIONS).transaction(async (tx) => {
      const events: AuditEvent[] = [];
      const messages: OutboxMessage[] = [];
      const result = await work({
        tx,
        audit: (event) => void events.push(event),
        tell: (message) => void messages.push(message),
        abandon: (value) => {
          throw new Abandoned(value);
        },
      });
      await insertAuditEvents(tx, events);
      return { result, told: await insertOutbox(tx, messages) };
    });
  } catch (thrown) {
    if (thrown instanceof Abandoned) return { result: thrown.value as Result, arrived: true };
    throw thrown;
  } finally {
    // Before anybody is told: others wait for the connection, and telling may take its time.
    waitUntil(client.end().catch(() => undefined));
  }
  return { result: done.result, arrived: await deliver(done.told) };
}

const readers = new WeakMap<Env, Queries>();

/** Holds no connection, so that requests may share it. */
function readerOf(env: Env): Queries {
  let reader = readers.get(env);
  if (!reader) {
    configureDriver(env);
    reader = drizzleHttp(neon(env.DATABASE_URL), OPTIONS);
    readers.set(env, reader);
  }
  return reader;
}

/** For what most requests ask: its SQL is put together once an isolate. */
export function prepared<Query extends object>(
  build: (read: Queries) => Query,
): (db: Pick<Database, "read">) => Query {
  const queries = new WeakMap<Queries, Query>();
  return ({ read }) => {
    let query = queries.get(read);
    if (!query) {
      query = build(read);
      queries.set(read, query);
    }
    return query;
  };
}

/** The driver's settings are global, as an isolate's environment is. */
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
