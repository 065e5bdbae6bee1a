/**
 * Servers with default settings that test files use one after the other, because starting one takes longer than most
 * tests. The process of the test runner starts them; each file uses one exclusively until it stops it. Rows of earlier
 * files remain, so each test creates organizations of its own, and no two files use the same name for a tunnel or a
 * domain, which the pool checks.
 */
import { appendFileSync, closeSync, openSync, readSync, statSync } from "node:fs";
import { createServer, request, type IncomingMessage } from "node:http";
import { json, text } from "node:stream/consumers";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { createTemporaryDir } from "../directories.ts";
import { createTestServer, startServer, type TestServer } from "./server.ts";

/** Processes that run tests are started after the pool and inherit this variable. */
const POOL_SOCKET = "UNDERPASS_TEST_SERVER_POOL";
const OUTPUT_FILE = "output.log";

type Settings = Record<string, string>;

interface Lease {
  id: number;
  url: string;
  dataDir: string;
  pid: number;
}

interface LeaseReturn {
  id: number;
  file: string;
  /** Public names that the file's tests used. */
  names: string[];
}

/** @returns a function that stops all servers. */
export async function startServerPool(): Promise<() => Promise<void>> {
  const servers: { key: string; isFree: boolean; started: Promise<TestServer> }[] = [];
  const fileByName = new Map<string, string>();

  async function lease(env: Settings): Promise<Lease> {
    const key = JSON.stringify(env);
    let id = servers.findIndex((server) => server.isFree && server.key === key);
    if (id === -1) id = servers.push({ key, isFree: false, started: startLogged(env) }) - 1;
    servers[id]!.isFree = false;
    const server = await servers[id]!.started;
    return { id, url: server.url, dataDir: server.dataDir, pid: await server.getPid("server") };
  }

  function returnServer({ id, file, names }: LeaseReturn): void {
    servers[id]!.isFree = true;
    claimNames(fileByName, file, names);
  }

  const dir = await createTemporaryDir();
  const path = join(dir, "pool.sock");
  const listener = createServer((incoming, answer) => {
    const handle = async (): Promise<unknown> => {
      const body = await json(incoming);
      return incoming.url === "/lease"
        ? lease(body as Settings)
        : returnServer(body as LeaseReturn);
    };
    handle().then(
      (body) => answer.end(JSON.stringify(body ?? {})),
      (error: unknown) => answer.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  process.env[POOL_SOCKET] = path;
  return async () => {
    listener.close();
    await Promise.all(servers.map(async ({ started }) => (await started).stop()));
    await rm(dir, { recursive: true, force: true });
  };
}

/** @throws when another file used one of the names: the two would fail on the same server. */
export function claimNames(fileByName: Map<string, string>, file: string, names: string[]): void {
  for (const name of names) {
    const other = fileByName.get(name) ?? file;
    if (other !== file) throw new Error(`${file} uses the name ${name}, and so does ${other}`);
    fileByName.set(name, file);
  }
}

async function startLogged(env: Settings): Promise<TestServer> {
  const chunks: string[] = [];
  let write = (chunk: string): unknown => chunks.push(chunk);
  const server = await startServer({ env, onOutput: (chunk) => write(chunk) });
  const file = join(server.dataDir, OUTPUT_FILE);
  write = (chunk) => appendFileSync(file, chunk);
  write(chunks.join(""));
  return server;
}

/** Leases a server for exclusive use. `stop` returns it to the pool. */
export async function leaseServer(env: Settings = {}): Promise<TestServer> {
  const socketPath = process.env[POOL_SOCKET];
  // Benchmarks run without a pool.
  if (socketPath === undefined) return startServer({ env });
  const file = findTestFile(new Error().stack);
  const { id, url, dataDir, pid } = (await call(socketPath, "/lease", env)) as Lease;
  const output = join(dataDir, OUTPUT_FILE);
  const { size } = statSync(output);
  const leasedAt = new Date();
  let isReturned = false;
  const server = createTestServer({
    url,
    dataDir,
    pid,
    setupCode: undefined,
    output: () => readFrom(output, size),
    async stop() {
      if (isReturned) return null;
      isReturned = true;
      const names = await readNames(await server.databaseUrl(), leasedAt);
      await call(socketPath, "/return", { id, file, names } satisfies LeaseReturn);
      return null;
    },
    kill: () => Promise.reject(new Error("this server is shared: start one with shared: false")),
  });
  return server;
}

/** Reads the test file from the stack, because servers are started before the runner reports a current test. */
function findTestFile(stack = ""): string {
  const file = /(test\/[\w./-]+\.test\.ts)/.exec(stack)?.[1];
  if (file === undefined) throw new Error(`no test file in the stack:\n${stack}`);
  return file;
}

const NAMES_SINCE = `
  select subdomain as name from tunnels where created_at >= $1
  union select domain from domains where created_at >= $1
  union select subdomain from reserved_subdomains where created_at >= $1`;

async function readNames(databaseUrl: string, since: Date): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(NAMES_SINCE, [since]);
    return rows.map(({ name }) => name);
  } finally {
    await client.end();
  }
}

function readFrom(path: string, offset: number): string {
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(Math.max(0, statSync(path).size - offset));
    const length = readSync(file, bytes, 0, bytes.length, offset);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}

function call(socketPath: string, path: string, body: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const receive = async (answer: IncomingMessage): Promise<unknown> => {
      if (answer.statusCode === 200) return json(answer);
      throw new Error(await text(answer));
    };
    request({ socketPath, method: "POST", path, agent: false }, (answer) => {
      receive(answer).then(resolve, reject);
    })
      .on("error", reject)
      .end(JSON.stringify(body));
  });
}
