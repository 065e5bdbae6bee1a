import { neon, neonConfig, NeonDbError, Pool, type PoolClient } from "@neondatabase/serverless";
import { sql as raw } from "drizzle-orm";
import { drizzle as drizzleHttp } from "drizzle-orm/neon-http";
import { drizzle as drizzleSessions } from "drizzle-orm/neon-serverless";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import {
  GATEWAY_SESSION_CONNECTIONS,
  type Gateway,
  startGateway,
} from "../../../self-host/gateway/gateway.ts";
import { type EmbeddedPostgres, startPostgres } from "../../../self-host/postgres/postgres.ts";
import { createTemporaryDir, silentLog } from "../../harness/directories.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const notes = pgTable("notes", {
  id: integer().primaryKey(),
  body: text(),
  tags: text().array().notNull(),
});

let dir: string;
let postgres: EmbeddedPostgres;
let gateway: Gateway;

beforeAll(async () => {
  dir = await createTemporaryDir();
  postgres = await startPostgres(dir, "a password", silentLog);
  gateway = await startGateway({
    socketPath: undefined,
    databaseUrl: postgres.url,
    secret: "right",
    mailDir: join(dir, "mail"),
    smtpServer: undefined,
    log: silentLog,
  });
  neonConfig.fetchEndpoint = () => `http://${gateway.address}/sql`;
  neonConfig.wsProxy = () => `${gateway.address}/v2`;
  neonConfig.useSecureWebSocket = false;
  neonConfig.webSocketConstructor = WebSocket;
  const sql = neon(gateway.databaseUrl);
  await sql`create table notes (id int primary key, body text, tags text[] not null)`;
}, 60_000);

afterAll(async () => {
  await gateway.close();
  await postgres.stop();
  await rm(dir, { recursive: true });
});

beforeEach(async () => {
  await neon(gateway.databaseUrl)`truncate notes`;
});

async function withPool<T>(use: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = new Pool({ connectionString: gateway.databaseUrl, max: 1 });
  // A lost connection fails the next query.
  pool.on("error", () => {});
  try {
    return await use(pool);
  } finally {
    await pool.end();
  }
}

/** Repeated, because a connection returns to the pool after its client has received the response. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  await expect.poll(condition, WAIT_OPTIONS).toBe(true);
}

describe("values arrive unchanged", () => {
  const note = {
    id: 1,
    body: 'quote " backslash \\ comma , {brace} ünïcode',
    tags: ["a,b", "", '"'],
  };

  test("over HTTP", async () => {
    const db = drizzleHttp(neon(gateway.databaseUrl));
    await db.insert(notes).values([note, { id: 2, body: null, tags: [] }]);
    expect(await db.select().from(notes).orderBy(notes.id)).toEqual([
      note,
      { id: 2, body: null, tags: [] },
    ]);
  });

  test("over a WebSocket", async () => {
    await withPool(async (pool) => {
      const db = drizzleSessions(pool);
      await db.insert(notes).values([note, { id: 2, body: null, tags: [] }]);
      expect(await db.select().from(notes).orderBy(notes.id)).toEqual([
        note,
        { id: 2, body: null, tags: [] },
      ]);
    });
  });

  test("of many types, in objects and in arrays", async () => {
    const query = `select $1::int as i, $2::bigint as l, $3::bool as b, $4::jsonb as j,
      encode($5::bytea, 'hex') as y, $6::int[] as a, null as n`;
    const params = [
      1,
      "9007199254740993",
      true,
      { k: [1] },
      new TextEncoder().encode("hé"),
      [1, 2],
    ];
    const row = {
      i: 1,
      l: "9007199254740993",
      b: true,
      j: { k: [1] },
      y: "68c3a9",
      a: [1, 2],
      n: null,
    };
    const sql = neon(gateway.databaseUrl);
    expect(await sql.query(query, params)).toEqual([row]);
    expect(await sql.query(query, params, { arrayMode: true })).toEqual([Object.values(row)]);
    await withPool(async (pool) => {
      expect((await pool.query(query, params)).rows).toEqual([row]);
    });
  });

  test("with the fields, the command and the count of a full result", async () => {
    const sql = neon(gateway.databaseUrl, { fullResults: true });
    const inserted = await sql`insert into notes values (1, 'a', '{}'), (2, 'b', '{}')`;
    expect(inserted).toMatchObject({ command: "INSERT", rowCount: 2, rows: [] });
    const selected = await sql`select id from notes`;
    expect(selected).toMatchObject({ command: "SELECT", rowCount: 2 });
    expect(selected.fields).toEqual([{ name: "id", dataTypeID: 23 }]);
  });

  test("at a size of megabytes", async () => {
    const body = "x".repeat(4 * 1024 * 1024);
    const sql = neon(gateway.databaseUrl);
    expect((await sql`select ${body}::text as body`)[0]?.body).toHaveLength(body.length);
    await withPool(async (pool) => {
      const { rows } = await pool.query<{ body: string }>("select $1::text as body", [body]);
      expect(rows[0]?.body).toHaveLength(body.length);
    });
  });
});

describe("an error contains PostgreSQL's code and fields", () => {
  const duplicate = { code: "23505", constraint: "notes_pkey", table: "notes", severity: "ERROR" };

  test("over HTTP", async () => {
    const sql = neon(gateway.databaseUrl);
    await sql`insert into notes values (1, 'a', '{}')`;
    const error: unknown = await sql`insert into notes values (1, 'b', '{}')`.catch(
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(NeonDbError);
    expect(error).toMatchObject({ ...duplicate, detail: "Key (id)=(1) already exists." });
    await expect(sql`select nothing`).rejects.toMatchObject({ code: "42703", position: "8" });
    expect(await sql`select count(*)::int as n from notes`).toEqual([{ n: 1 }]);
  });

  test("over a WebSocket, and the session continues", async () => {
    await withPool(async (pool) => {
      await pool.query("insert into notes values (1, 'a', '{}')");
      const again = pool.query("insert into notes values (1, 'b', '{}')");
      await expect(again).rejects.toMatchObject(duplicate);
      expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    });
  });
});

describe("a batch is one transaction", () => {
  test("that commits all statements", async () => {
    const db = drizzleHttp(neon(gateway.databaseUrl));
    const [, rows] = await db.batch([
      db.insert(notes).values({ id: 1, body: "a", tags: [] }),
      db.select().from(notes),
    ]);
    expect(rows).toHaveLength(1);
  });

  test("that commits nothing after an error", async () => {
    const sql = neon(gateway.databaseUrl);
    const insert = sql`insert into notes values (1, 'a', '{}')`;
    await expect(sql.transaction([insert, insert])).rejects.toMatchObject({ code: "23505" });
    expect(await sql`select * from notes`).toEqual([]);
  });

  test("with the requested isolation level and access mode", async () => {
    const sql = neon(gateway.databaseUrl);
    const options = { isolationLevel: "Serializable", readOnly: true, deferrable: true } as const;
    const results = await sql.transaction(
      [
        sql`show transaction_isolation`,
        sql`show transaction_read_only`,
        sql`show transaction_deferrable`,
      ],
      options,
    );
    expect(results).toEqual([
      [{ transaction_isolation: "serializable" }],
      [{ transaction_read_only: "on" }],
      [{ transaction_deferrable: "on" }],
    ]);
  });

  test("unless it only reads: then each statement sees what is committed when it starts", async () => {
    const sql = neon(gateway.databaseUrl);
    const options = { isolationLevel: "ReadCommitted", readOnly: true } as const;
    const id = sql`select pg_current_xact_id()::text as id`;
    const ids = (await sql.transaction([id, id], options)).flat().map((row) => row.id as string);
    expect(new Set(ids).size).toBe(2);
    const insert = sql`insert into notes values (1, 'a', '{}')`;
    await expect(sql.transaction([insert], options)).rejects.toMatchObject({ code: "25006" });
  });
});

describe("an interactive transaction", () => {
  test("commits", async () => {
    await withPool((pool) =>
      drizzleSessions(pool).transaction(async (tx) => {
        await tx.insert(notes).values({ id: 1, body: "a", tags: [] });
        expect(await tx.select().from(notes)).toHaveLength(1);
      }),
    );
    expect(await neon(gateway.databaseUrl)`select id from notes`).toEqual([{ id: 1 }]);
  });

  test("rolls back on an error", async () => {
    const failing = withPool((pool) =>
      drizzleSessions(pool).transaction(async (tx) => {
        await tx.insert(notes).values({ id: 1, body: "a", tags: [] });
        throw new Error("no");
      }),
    );
    await expect(failing).rejects.toThrow("no");
    expect(await neon(gateway.databaseUrl)`select id from notes`).toEqual([]);
  });

  test.each([
    ["between two queries", async (client: PoolClient) => void (await client.query("select 1"))],
    [
      "during a query",
      (client: PoolClient) => {
        client.query("select pg_sleep(0.2)").catch(() => {});
        return Promise.resolve();
      },
    ],
  ])("is rolled back when its client vanishes %s", async (_when, before) => {
    const sql = neon(gateway.databaseUrl);
    const pool = new Pool({ connectionString: gateway.databaseUrl });
    pool.on("error", () => {});
    const client = await pool.connect();
    client.on("error", () => {});
    await client.query("begin");
    await client.query("insert into notes values (1, 'a', '{}')");
    await before(client);
    const { stream } = (client as unknown as { connection: { stream: { ws: WebSocket } } })
      .connection;
    stream.ws.terminate();
    // Waits for the lock of the uncommitted row, which is then rolled back.
    await sql`insert into notes values (1, 'b', '{}')`;
    expect(await sql`select body from notes`).toEqual([{ body: "b" }]);
  });

  test("leaves no session state to the next one", async () => {
    const pids = new Set<number>();
    for (let i = 0; i < GATEWAY_SESSION_CONNECTIONS * 2; i++) {
      await withPool(async (pool) => {
        const client = await pool.connect();
        const { rows } = await client.query<{ pid: number; zone: string; open: boolean }>(
          "select pg_backend_pid() as pid, current_setting('timezone') as zone, to_regclass('pg_temp.left_over') is not null as open",
        );
        expect(rows[0]).toMatchObject({ zone: "UTC", open: false });
        pids.add(rows[0]?.pid ?? 0);
        await client.query("begin");
        await client.query("set timezone = 'Asia/Tokyo'");
        await client.query("create temp table left_over (id int)");
        if (i % 2 === 0) await client.query("commit");
        client.release();
      });
    }
    expect(pids.size).toBeLessThanOrEqual(GATEWAY_SESSION_CONNECTIONS);
  });

  test("runs concurrently with as many others as there are connections, and the rest wait", async () => {
    const sessions = Array.from({ length: GATEWAY_SESSION_CONNECTIONS * 3 }, (_, id) =>
      withPool((pool) =>
        drizzleSessions(pool).transaction(async (tx) => {
          await tx.insert(notes).values({ id, body: null, tags: [] });
          await tx.execute(raw`select pg_sleep(0.01)`);
        }),
      ),
    );
    await Promise.all(sessions);
    expect(await neon(gateway.databaseUrl)`select count(*)::int as n from notes`).toEqual([
      { n: sessions.length },
    ]);
  });
});

describe("a client without the secret is rejected", () => {
  const wrong = () => gateway.databaseUrl.replace(":right@", ":wrong@");

  test("over HTTP", async () => {
    await expect(neon(wrong())`select 1`).rejects.toMatchObject({ code: "28P01" });
    const without = await fetch(`http://${gateway.address}/sql`, {
      method: "POST",
      body: JSON.stringify({ query: "select 1" }),
    });
    expect(without.status).toBe(400);
  });

  test("over a WebSocket", async () => {
    const pool = new Pool({ connectionString: wrong() });
    pool.on("error", () => {});
    await expect(pool.query("select 1")).rejects.toMatchObject({ code: "28P01" });
    await pool.end();
  });

  test.each(["/mail", "/argon2"])("by POST %s", async (path) => {
    const answer = await fetch(`http://${gateway.address}${path}`, {
      method: "POST",
      headers: { authorization: "Bearer wrong" },
      body: "{}",
    });
    expect(answer.status).toBe(401);
  });

  test.each([
    ["text", "hello there"],
    ["a length of 4 GiB", "\xff\xff\xff\xff\0\x03\0\0"],
    ["a length of zero", "\0\0\0\0\0\x03\0\0"],
    ["another protocol", "\0\0\0\x08\0\x02\0\0"],
  ])("by sending %s instead of a startup", async (_name, bytes) => {
    const socket = new WebSocket(`ws://${gateway.address}/v2`);
    socket.on("open", () => socket.send(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))));
    const received = await new Promise<string>((resolve) => {
      let all = "";
      socket.on("message", (data: Buffer) => (all += data.toString("latin1")));
      socket.on("close", () => resolve(all));
    });
    expect(received).toContain("08P01");
  });
});

test("a prepared statement returns the current columns after its table has changed", async () => {
  const sql = neon(gateway.databaseUrl);
  await sql`create table changing (a int)`;
  await sql`insert into changing values (1)`;
  // On all pooled connections at the same time, so that each has prepared it.
  const ask = () => Promise.all(Array.from({ length: 20 }, () => sql`select * from changing`));
  await ask();
  await sql`alter table changing add column b int default 2`;
  for (const rows of await ask()) expect(rows).toEqual([{ a: 1, b: 2 }]);
});

test("more different statements than a connection stores all work, repeatedly", async () => {
  const sql = neon(gateway.databaseUrl);
  // PostgreSQL rejects it, so there is nothing to deallocate when it is evicted.
  await expect(sql.query("selekt 1")).rejects.toMatchObject({ code: "42601" });
  for (const round of [0, 1]) {
    for (let i = 0; i < 250; i++) {
      expect(await sql.query(`select ${i} + $1::int as n`, [round])).toEqual([{ n: i + round }]);
    }
  }
});

test("a request of more than a thousand queries or ten megabytes is rejected, as is an invalid one", async () => {
  const ask = (headers: Record<string, string>, body: unknown) =>
    fetch(`http://${gateway.address}/sql`, {
      method: "POST",
      headers: { "neon-connection-string": gateway.databaseUrl, ...headers },
      body: JSON.stringify(body),
    });
  const rawText = { "neon-raw-text-output": "true" };
  expect((await ask({}, { query: "select 1" })).status).toBe(400);
  expect((await ask(rawText, { select: 1 })).status).toBe(400);
  const isolation = { ...rawText, "neon-batch-isolation-level": "toString" };
  expect((await ask(isolation, { queries: [] })).status).toBe(400);
  const queries = Array.from({ length: 1_001 }, () => ({ query: "select 1" }));
  expect((await ask(rawText, { queries })).status).toBe(400);
  expect((await ask(rawText, { query: "x".repeat(11 * 1024 * 1024) })).status).toBe(413);
});

test("connections that PostgreSQL terminates are replaced", async () => {
  const sql = neon(gateway.databaseUrl);
  await Promise.all(Array.from({ length: 10 }, () => sql`select 1`));
  const others =
    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'";
  await sql.query(others);
  await until(async () => {
    const answers = Array.from({ length: 10 }, () => sql`select 1 as one`);
    return (await Promise.allSettled(answers)).every(({ status }) => status === "fulfilled");
  });
});
