/** `npm run backup` and `npm run restore` as package.json starts them, and the contents of a data directory. */
import { type ChildProcess, execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ROOT } from "../../../self-host/build/build.ts";
import { connectDatabase } from "../../../self-host/postgres/migrate.ts";
import { startPostgres } from "../../../self-host/postgres/postgres.ts";
import { silentLog } from "../directories.ts";
import { NODE_ENVIRONMENT } from "../node-environment.ts";

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

interface CommandOptions {
  env?: Record<string, string>;
  /** A program that starts the command, with its arguments. */
  prefix?: string[];
  onStart?: (child: ChildProcess) => void;
}

export function runBackup(
  dataDir: string,
  to: string,
  options: CommandOptions = {},
): Promise<CommandResult> {
  return run("backup", ["--to", to], { ...options, env: { ...options.env, DATA_DIR: dataDir } });
}

export function runRestore(
  from: string,
  dataDir: string,
  options: CommandOptions = {},
): Promise<CommandResult> {
  return run("restore", ["--from", from, "--data-dir", dataDir], options);
}

const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
};

function run(
  name: "backup" | "restore",
  args: string[],
  { env, prefix = [], onStart }: CommandOptions,
): Promise<CommandResult> {
  const script = join(ROOT, scripts[name]!.split(" ").at(-1)!);
  const [program = "", ...rest] = [...prefix, process.execPath, script, ...args];
  return new Promise((resolve) => {
    // Ignores a .env file of the checkout.
    const options = { cwd: tmpdir(), env: { ...NODE_ENVIRONMENT, ...env } };
    const child = execFile(program, rest, options, (error, stdout, stderr) => {
      const code = typeof error?.code === "number" ? error.code : error ? 1 : 0;
      resolve({ code, stdout, stderr });
    });
    onStart?.(child);
  });
}

/** All rows of all tables as text, by table. */
export type Rows = Map<string, string[]>;

type Query = <Row>(text: string) => Promise<Row[]>;

export async function readRows(query: Query): Promise<Rows> {
  const tables = await query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' order by 1",
  );
  const rows: Rows = new Map();
  for (const { name } of tables) {
    const found = await query<{ row: string }>(`select t::text as row from "${name}" t order by 1`);
    rows.set(
      name,
      found.map(({ row }) => row),
    );
  }
  return rows;
}

/** Reads the rows of a server that is not running. */
export async function readStoredRows(dataDir: string): Promise<Rows> {
  const secrets = readFileSync(join(dataDir, "secrets.json"), "utf8");
  const { postgres: password } = JSON.parse(secrets) as { postgres: string };
  const postgres = await startPostgres(dataDir, password, silentLog);
  try {
    const client = await connectDatabase(postgres.url);
    const rows = await readRows(
      async <Row>(text: string) => (await client.query(text)).rows as Row[],
    );
    await client.end();
    return rows;
  } finally {
    await postgres.stop();
  }
}

/** The tables of every object's file, by its path. Alarms of a class are listed in a file of their own. */
export function readObjects(dataDir: string): Map<string, unknown> {
  const objectsDir = join(dataDir, "objects");
  const files = readdirSync(objectsDir, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".sqlite"))
    .sort();
  return new Map(files.map((path) => [path, readTables(join(objectsDir, path))]));
}

function readTables(path: string): Record<string, unknown> {
  using database = new DatabaseSync(path, { readOnly: true });
  const tables = database
    .prepare("select name, sql from sqlite_master where type = 'table' order by 1")
    .all() as { name: string; sql: string }[];
  return Object.fromEntries(
    tables.map(({ name, sql }) => {
      const select = database.prepare(`select * from "${name}"`);
      select.setReadBigInts(true);
      return [`${name} ${sql}`, select.all()];
    }),
  );
}
