import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFailed, test, vi } from "vitest";
import { listChildren } from "../../bench/processes.ts";
import { connectDatabase, migrate } from "../../self-host/postgres/migrate.ts";
import { getCommandLine } from "../../self-host/processes/processes.ts";
import { createPreparedDir, createTemporaryDir } from "../harness/directories.ts";
import { startServer, startExpectingFailure, type TestServer } from "../harness/server/server.ts";
import { WAIT_MAX_MS, WAIT_OPTIONS } from "../harness/timeouts.ts";

async function query<Row extends object>(server: TestServer, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: await server.databaseUrl() });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

const addRow = (server: TestServer, key: string) =>
  query(server, `insert into installation (key, value) values ('${key}', 'kept')`);
const hasRow = async (server: TestServer, key: string) =>
  (await query(server, `select from installation where key = '${key}'`)).length === 1;

async function untilHealthy(server: TestServer): Promise<void> {
  const status = () =>
    fetch(`${server.url}/health`).then(
      (answer) => answer.status,
      () => "refused",
    );
  await expect.poll(status, WAIT_OPTIONS).toBe(200);
}

function startWithNpm(dir: string) {
  const child = spawn("npm", ["start"], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: "0",
      DATA_DIR: dir,
      LOCAL_RELAY: "off",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (text: Buffer) => (output += text.toString()));
  return { child, output: () => output };
}

describe("a server", () => {
  let dir: string;
  let server: TestServer;

  beforeAll(async () => {
    dir = await createPreparedDir();
    server = await startServer({ dataDir: dir });
  });
  afterAll(async () => {
    await server.stop();
    await rm(dir, { recursive: true });
  });

  test("serves requests, and prints a code for the first account", async () => {
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(server.setupCode).toMatch(/^([2-9A-HJ-NP-Z]{4}-){3}[2-9A-HJ-NP-Z]{4}$/);
  });

  test("names one address as its own and in the command of the first login", () => {
    const url = `http://localhost:${server.port}`;
    expect(server.output).toContain(`"url":"${url}"`);
    expect(server.output).toContain(
      `"npx underpass login --setup ${server.setupCode} --server ${url}"`,
    );
  });

  test("hides its secrets from other users: in files, command lines and logs", async () => {
    const mode = async (path: string) => ((await stat(join(dir, path))).mode & 0o777).toString(8);
    expect(await mode("secrets.json")).toBe("600");
    expect(await mode("run")).toBe("700");
    expect(await mode("objects")).toBe("700");
    expect(await mode("")).toBe("700");
    const secrets = Object.values(
      JSON.parse(await readFile(join(dir, "secrets.json"), "utf8")) as Record<string, string>,
    );
    const configuration = await readFile(join(dir, "run/workerd.capnp"), "utf8");
    for (const secret of secrets) {
      expect(configuration).not.toContain(secret);
      expect(server.output).not.toContain(secret);
      for (const part of ["server", "workerd", "postgres"] as const) {
        expect(getCommandLine(await server.getPid(part))).not.toContain(secret);
      }
    }
  });

  test("uses its data directory exclusively", async () => {
    const { code, stderr } = await startExpectingFailure({ DATA_DIR: dir });
    expect(code).toBe(1);
    expect(stderr).toBe(
      `underpass: DATA_DIR: in use by the server with process id ${await server.getPid("server")}: stop it, or set DATA_DIR to another directory\n`,
    );
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  test("migrates once when several start at the same time", async () => {
    await query(server, "create database twice");
    const url = (await server.databaseUrl()).replace(/postgres$/, "twice");
    const clients = await Promise.all([1, 2, 3].map(() => connectDatabase(url)));
    const applied = await Promise.all(clients.map((client) => migrate(client)));
    await Promise.all(clients.map((client) => client.end()));
    expect(applied.filter((count) => count > 0)).toHaveLength(1);
  });

  test("reports why a migration failed when its connection is lost too", async () => {
    await query(server, "create database lost");
    const url = (await server.databaseUrl()).replace(/postgres$/, "lost");
    const [other, client] = await Promise.all([connectDatabase(url), connectDatabase(url)]);
    await other.query("begin");
    await other.query("create schema drizzle");
    const failure = expect(migrate(client)).rejects.toThrow("due to administrator command");
    const end = `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'lost' and wait_event_type = 'Lock'`;
    await expect.poll(() => query(server, end), WAIT_OPTIONS).toHaveLength(1);
    await failure;
    await Promise.all([other.end(), client.end()]);
  });

  test("uses the database in DATABASE_URL instead of an embedded one", async () => {
    await query(server, "create database external");
    const url = (await server.databaseUrl()).replace(/postgres$/, "external");
    await using other = await startServer({ env: { DATABASE_URL: url } });
    expect((await fetch(`${other.url}/ready`)).status).toBe(200);
    expect(await readdir(other.dataDir)).not.toContain("postgres");
    expect(other.output).not.toContain(new URL(url).password);
  });

  test.each(["workerd", "postgres"] as const)(
    "restarts %s after a kill -9, with all rows",
    async (part) => {
      await addRow(server, `before ${part} was killed`);
      const pid = await server.getPid(part);
      process.kill(pid, "SIGKILL");
      const pidNow = () => server.getPid(part).catch(() => pid);
      await expect.poll(pidNow, WAIT_OPTIONS).not.toBe(pid);
      await expect.poll(() => server.output, WAIT_OPTIONS).toContain(`${part} was restarted`);
      await untilHealthy(server);
      expect(await hasRow(server, `before ${part} was killed`)).toBe(true);
    },
  );
});

async function expectCleanStop(server: TestServer, signal: NodeJS.Signals): Promise<void> {
  const pids = [await server.getPid("workerd"), await server.getPid("postgres")];
  expect(await server.stop(signal)).toBe(0);
  expect(pids.map(getCommandLine)).toEqual([undefined, undefined]);
}

describe("a stop", () => {
  test("by SIGINT exits with 0 and leaves no process running", async () => {
    await expectCleanStop(await startServer(), "SIGINT");
  });

  test("works through npm start", async () => {
    const dir = await createPreparedDir();
    const { child: npm, output } = startWithNpm(dir);
    await expect.poll(output, WAIT_OPTIONS).toContain("listening");
    npm.kill("SIGTERM");
    const [code] = (await once(npm, "exit")) as [number];
    expect(code).toBe(0);
    await rm(dir, { recursive: true });
  });
});

test("a kill -9 of npm start leaves no process running", async () => {
  const dir = await createPreparedDir();
  const npm = startWithNpm(dir);
  await expect.poll(() => npm.output(), WAIT_OPTIONS).toContain("listening");
  const lock = JSON.parse(await readFile(join(dir, "run/server.json"), "utf8")) as LockedProcesses;
  const postmaster = (await readFile(join(dir, "postgres/postmaster.pid"), "utf8")).split("\n");
  const pids = [lock.pid, lock.workerd, Number(postmaster[0])];
  expect(pids.map(getCommandLine)).not.toContain(undefined);
  npm.child.kill("SIGKILL");
  const left = () => pids.map(getCommandLine).filter((line) => line !== undefined);
  await expect.poll(left, { timeout: 5_000, interval: 20 }).toEqual([]);
  await rm(dir, { recursive: true });
});

interface LockedProcesses {
  pid: number;
  workerd: number;
}

test("a server runs in a directory that other users can't enter, also as root, and a SIGTERM leaves no process running", async () => {
  const dir = await createTemporaryDir();
  expect((await stat(dir)).mode & 0o777).toBe(0o700);
  const server = await startServer({ dataDir: join(dir, "inner/data") });
  await untilHealthy(server);
  await expectCleanStop(server, "SIGTERM");
  await rm(dir, { recursive: true });
});

test("after a kill -9 of the server, the next start recovers without help", async () => {
  const dir = await createPreparedDir();
  let server = await startServer({ dataDir: dir });
  expect(server.setupCode).toBeDefined();
  await query(
    server,
    "insert into users (email, is_superadmin) values ('first@example.com', true)",
  );
  for (const round of [1, 2]) {
    await addRow(server, `round ${round}`);
    const leftovers = [await server.getPid("workerd"), await server.getPid("postgres")];
    await server.kill();
    // On the same port: processes that are left must not use it.
    server = await startServer({ dataDir: dir, env: { PORT: String(server.port) } });
    expect(leftovers.map(getCommandLine)).toEqual([undefined, undefined]);
    await untilHealthy(server);
    expect(await hasRow(server, `round ${round}`)).toBe(true);
    expect(server.setupCode, "there is an owner").toBeUndefined();
  }
  await server.stop();
  await rm(dir, { recursive: true });
});

test("a stop while the database is being created leaves no process running", async () => {
  const dir = await createTemporaryDir();
  const server = spawn(process.execPath, [join(import.meta.dirname, "../../self-host/start.ts")], {
    cwd: dir,
    env: { PATH: process.env.PATH, PORT: "0", DATA_DIR: join(dir, "data"), LOCAL_RELAY: "off" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const exit = once(server, "exit");
  const findInitdb = () =>
    listChildren(server.pid!).find((pid) => getCommandLine(pid)?.includes("/initdb "));
  const initdb = await vi.waitUntil(findInitdb, { timeout: WAIT_MAX_MS, interval: 5 });
  // It does not end by itself.
  process.kill(initdb, "SIGSTOP");
  onTestFailed(() => void process.kill(initdb, "SIGKILL"));
  server.kill("SIGTERM");
  await exit;
  await expect.poll(() => getCommandLine(initdb), WAIT_OPTIONS).toBeUndefined();
  await rm(dir, { recursive: true, maxRetries: 5 });
});

describe("a failing start prints a one-line reason, exits with 1 and leaves no process running", () => {
  let dir: string;
  beforeAll(async () => {
    dir = await createPreparedDir();
    await (await startServer({ dataDir: dir })).stop();
  });
  afterAll(() => rm(dir, { recursive: true }));

  async function expectFailure(env: Record<string, string>, line: RegExp): Promise<void> {
    const { code, stdout, stderr } = await startExpectingFailure({ DATA_DIR: dir, ...env });
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^underpass: [^\n]+\n$/);
    expect(stderr).toMatch(line);
    expect(code).toBe(1);
    const left = await readFile(join(dir, "postgres/postmaster.pid"), "utf8").catch(() => "");
    expect(left).toBe("");
  }

  test("with an invalid setting", () => expectFailure({ TRUST_PROXY: "yes" }, /TRUST_PROXY: /));

  test("with a port in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    await expectFailure({ PORT: String(port) }, new RegExp(`PORT: ${port} is in use`));
    other.close();
  });

  test("with an address of another machine", () =>
    expectFailure({ HOST: "192.0.2.1" }, /HOST, PORT: can't listen on 192\.0\.2\.1/));

  test("with an unreachable database", () =>
    expectFailure(
      { DATABASE_URL: "postgresql://user:secret@127.0.0.1:1/db" },
      /DATABASE_URL: can't connect to the database at 127\.0\.0\.1:1: .*ECONNREFUSED/,
    ));

  test("with another encryption key, and changes no object", async () => {
    const classDir = join(dir, "objects/underpass-Receiver");
    await mkdir(classDir, { recursive: true });
    const unused = join(classDir, `${"0".repeat(64)}.sqlite`);
    await writeFile(unused, "");
    await expectFailure(
      { ENCRYPTION_KEY: btoa("k".repeat(32)) },
      /ENCRYPTION_KEY: not the key that this database was set up with/,
    );
    expect((await stat(unused)).size).toBe(0);
  });

  test("with another signing key", async () => {
    const jwk = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
    await expectFailure(
      { TOKEN_SIGNING_KEY: JSON.stringify(jwk) },
      /TOKEN_SIGNING_KEY: not the key/,
    );
  });

  test("with a key of another type", () =>
    expectFailure(
      { JWT_PRIVATE_KEY: '{"kty":"RSA"}' },
      /JWT_PRIVATE_KEY: must be a private P-256 key/,
    ));

  test("with an unusable data directory", () =>
    expectFailure({ DATA_DIR: "/dev/null/data" }, /DATA_DIR: \/dev\/null\/data can't be used/));

  test.runIf(process.platform === "linux")("a data directory below /proc", () =>
    expectFailure({ DATA_DIR: "/proc/data/x" }, /DATA_DIR: \/proc\/data\/x can't be used/),
  );

  test("with secrets that other users can read", async () => {
    const path = join(dir, "secrets.json");
    await chmod(path, 0o644);
    await expectFailure({}, /secrets\.json can be read by other users/);
    await chmod(path, 0o600);
  });

  test("with a damaged file of secrets", async () => {
    const path = join(dir, "secrets.json");
    const before = await readFile(path, "utf8");
    await writeFile(path, before.slice(0, -20));
    await expectFailure({}, /secrets\.json is damaged/);
    await writeFile(path, before);
  });

  test("and succeeds when the cause is fixed", async () => {
    const server = await startServer({ dataDir: dir });
    expect(await server.stop()).toBe(0);
  });
});
