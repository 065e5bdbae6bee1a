import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { chmod, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectDatabase, migrate } from "../../self-host/postgres/migrate.ts";
import { getCommandLine } from "../../self-host/processes/processes.ts";
import { createTemporaryDir } from "../harness/directories.ts";
import { startServer, startExpectingFailure, type TestServer } from "../harness/server/server.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";

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

describe("a server", () => {
  let dir: string;
  let server: TestServer;

  beforeAll(async () => {
    dir = await createTemporaryDir();
    server = await startServer({ dataDir: dir });
  });
  afterAll(async () => {
    await server.stop();
    await rm(dir, { recursive: true });
  });

  test("answers, and tells a newcomer what to do next", async () => {
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(server.setupCode).toMatch(/^([2-9A-HJ-NP-Z]{4}-){3}[2-9A-HJ-NP-Z]{4}$/);
    expect(server.output).toContain(
      `npx underpass login --setup ${server.setupCode} --server ${server.url}`,
    );
  });

  test("keeps its secrets to its owner, in files and in what other processes can see", async () => {
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

  test("has its directory for itself", async () => {
    const { code, stderr } = await startExpectingFailure({ DATA_DIR: dir });
    expect(code).toBe(1);
    expect(stderr).toBe(
      `underpass: DATA_DIR: in use by the server with process id ${await server.getPid("server")}\n`,
    );
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  test("migrates once however many start at once", async () => {
    await query(server, "create database twice");
    const url = (await server.databaseUrl()).replace(/postgres$/, "twice");
    const clients = await Promise.all([1, 2, 3].map(() => connectDatabase(url)));
    const applied = await Promise.all(clients.map(migrate));
    await Promise.all(clients.map((client) => client.end()));
    expect(applied.filter((count) => count > 0)).toHaveLength(1);
  });

  test("lends its database to another that brings none", async () => {
    await query(server, "create database external");
    const url = (await server.databaseUrl()).replace(/postgres$/, "external");
    await using other = await startServer({ env: { DATABASE_URL: url } });
    expect((await fetch(`${other.url}/ready`)).status).toBe(200);
    expect(await readdir(other.dataDir)).not.toContain("postgres");
    expect(other.output).not.toContain(new URL(url).password);
  });

  test.each(["workerd", "postgres"] as const)(
    "brings %s back after a kill -9, with all rows",
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

describe("a stop", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "by %s is clean: exit 0, nothing runs on",
    async (signal) => {
      const server = await startServer();
      const pids = [await server.getPid("workerd"), await server.getPid("postgres")];
      expect(await server.stop(signal)).toBe(0);
      expect(pids.map(getCommandLine)).toEqual([undefined, undefined]);
    },
  );

  test("reaches the server through npm start too", async () => {
    const dir = await createTemporaryDir();
    const npm = spawn("npm", ["start"], {
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
    npm.stdout.on("data", (text: Buffer) => (output += text.toString()));
    await expect.poll(() => output, WAIT_OPTIONS).toContain("listening");
    npm.kill("SIGTERM");
    const [code] = (await once(npm, "exit")) as [number];
    expect(code).toBe(0);
    await rm(dir, { recursive: true });
  });
});

test("it runs in a directory that nobody else can enter, as root too", async () => {
  const dir = await createTemporaryDir();
  expect((await stat(dir)).mode & 0o777).toBe(0o700);
  const server = await startServer({ dataDir: join(dir, "inner/data") });
  await untilHealthy(server);
  expect(await server.stop()).toBe(0);
  await rm(dir, { recursive: true });
});

test("after a kill -9 of the server, the next start recovers everything by itself", async () => {
  const dir = await createTemporaryDir();
  let server = await startServer({ dataDir: dir });
  for (const round of [1, 2]) {
    await addRow(server, `round ${round}`);
    const leftovers = [await server.getPid("workerd"), await server.getPid("postgres")];
    await server.kill();
    expect(leftovers.map(getCommandLine)).not.toContain(undefined);
    // On the same port: what is left must not hold it.
    server = await startServer({ dataDir: dir, env: { PORT: String(server.port) } });
    expect(leftovers.map(getCommandLine)).toEqual([undefined, undefined]);
    await untilHealthy(server);
    expect(await hasRow(server, `round ${round}`)).toBe(true);
  }
  await server.stop();
  await rm(dir, { recursive: true });
});

describe("a start that can't succeed says why in one line, exits 1 and leaves nothing running", () => {
  let dir: string;
  beforeAll(async () => {
    dir = await createTemporaryDir();
    await (await startServer({ dataDir: dir })).stop();
  });
  afterAll(() => rm(dir, { recursive: true }));

  async function expectFailure(env: Record<string, string>, line: RegExp): Promise<void> {
    const { code, stderr } = await startExpectingFailure({ DATA_DIR: dir, ...env });
    expect(stderr).toMatch(/^underpass: [^\n]+\n$/);
    expect(stderr).toMatch(line);
    expect(code).toBe(1);
    const left = await readFile(join(dir, "postgres/postmaster.pid"), "utf8").catch(() => "");
    expect(left).toBe("");
  }

  test("a bad setting", () => expectFailure({ TRUST_PROXY: "yes" }, /TRUST_PROXY: /));

  test("a port in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    await expectFailure({ PORT: String(port) }, new RegExp(`PORT: ${port} is in use`));
    other.close();
  });

  test("an address of another machine", () =>
    expectFailure({ HOST: "192.0.2.1" }, /HOST, PORT: can't listen on 192\.0\.2\.1/));

  test("a database that can't be reached", () =>
    expectFailure(
      { DATABASE_URL: "postgresql://user:secret@127.0.0.1:1/db" },
      /DATABASE_URL: can't connect to the database at 127\.0\.0\.1:1: .*ECONNREFUSED/,
    ));

  test("another encryption key", () =>
    expectFailure(
      { ENCRYPTION_KEY: btoa("k".repeat(32)) },
      /ENCRYPTION_KEY: not the key that this database was set up with/,
    ));

  test("another signing key", async () => {
    const jwk = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
    await expectFailure(
      { TOKEN_SIGNING_KEY: JSON.stringify(jwk) },
      /TOKEN_SIGNING_KEY: not the key/,
    );
  });

  test("a key of another kind", () =>
    expectFailure(
      { JWT_PRIVATE_KEY: '{"kty":"RSA"}' },
      /JWT_PRIVATE_KEY: must be a private P-256 key/,
    ));

  test("a data directory that can't be one", () =>
    expectFailure({ DATA_DIR: "/dev/null/data" }, /DATA_DIR: \/dev\/null\/data can't be used/));

  test("secrets that others can read", async () => {
    const path = join(dir, "secrets.json");
    await chmod(path, 0o644);
    await expectFailure({}, /secrets\.json can be read by other users/);
    await chmod(path, 0o600);
  });

  test("secrets that are damaged", async () => {
    const path = join(dir, "secrets.json");
    const before = await readFile(path, "utf8");
    await writeFile(path, before.slice(0, -20));
    await expectFailure({}, /secrets\.json is damaged/);
    await writeFile(path, before);
  });

  test("and when the reason is gone, it starts", async () => {
    const server = await startServer({ dataDir: dir });
    expect(await server.stop()).toBe(0);
  });
});
