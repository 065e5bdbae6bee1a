/**
 * Servers that test files use one after the other, because starting one takes longer than most tests. The process of
 * the test runner starts them; each file uses one exclusively until it stops it. Rows of earlier files remain, so each
 * test creates organizations of its own, and no two files use the same name for a tunnel or a domain, which the pool
 * checks.
 *
 * The kinds of servers are in `server-kinds.ts`. Every server expects the fakes of other services, such as a resolver or
 * an identity provider, on ports that are reserved for it. A file starts those that it needs on these ports
 * (`TestApi.fakePorts`), and stops them before it stops the server, so that the next file can use the ports. A server of
 * an earlier file may have cached what a fake published: one with new keys publishes them under new ids.
 */
import { appendFileSync, closeSync, openSync, readSync, statSync } from "node:fs";
import { createServer, request, type IncomingMessage } from "node:http";
import { json, text } from "node:stream/consumers";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { createTemporaryDir } from "../directories.ts";
import { isFree, reservePorts } from "../ports.ts";
import {
  assignFakePorts,
  buildServerSettings,
  FAKE_PORTS_COUNT,
  type FakePorts,
  type ServerKind,
} from "./server-kinds.ts";
import { createTestServer, startServer, type ServerOptions, type TestServer } from "./server.ts";

/** Processes that run tests are started after the pool and inherit this variable. */
const POOL_SOCKET = "UNDERPASS_TEST_SERVER_POOL";
const OUTPUT_FILE = "output.log";

interface StartedServer {
  server: TestServer;
  fakePorts: FakePorts;
}

interface LeaseRequest {
  kind: ServerKind;
}

interface Lease {
  id: number;
  url: string;
  dataDir: string;
  pid: number;
  fakePorts: FakePorts;
}

interface LeaseReturn {
  id: number;
  file: string;
  /** Public names that the file's tests used. */
  names: string[];
}

export interface LeasedServer extends TestServer {
  fakePorts: FakePorts;
}

/** @returns a function that stops all servers. */
export async function startServerPool(): Promise<() => Promise<void>> {
  const servers: { kind: ServerKind; isLeased: boolean; started: Promise<StartedServer> }[] = [];
  const fileByName = new Map<string, string>();

  async function lease({ kind }: LeaseRequest): Promise<Lease> {
    let id = servers.findIndex((server) => !server.isLeased && server.kind === kind);
    if (id === -1) id = servers.push({ kind, isLeased: true, started: startLogged(kind) }) - 1;
    servers[id]!.isLeased = true;
    const { server, fakePorts } = await servers[id]!.started;
    const { url, dataDir } = server;
    return { id, url, dataDir, pid: await server.getPid("server"), fakePorts };
  }

  async function returnServer({ id, file, names }: LeaseReturn): Promise<void> {
    const { fakePorts } = await servers[id]!.started;
    for (const [fake, port] of Object.entries(fakePorts)) {
      if (!(await isFree(port))) throw new Error(`${file} stopped its server before the ${fake}`);
    }
    servers[id]!.isLeased = false;
    claimNames(fileByName, file, names);
  }

  const dir = await createTemporaryDir();
  const path = join(dir, "pool.sock");
  const listener = createServer((incoming, answer) => {
    const handle = async (): Promise<unknown> => {
      const body = await json(incoming);
      return incoming.url === "/lease"
        ? lease(body as LeaseRequest)
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
    await Promise.all(servers.map(async ({ started }) => (await started).server.stop()));
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

async function startKind(
  kind: ServerKind,
  onOutput?: ServerOptions["onOutput"],
): Promise<StartedServer> {
  const fakePorts = assignFakePorts(await reservePorts(FAKE_PORTS_COUNT));
  const env = buildServerSettings(kind, fakePorts);
  return { server: await startServer({ env, ...(onOutput && { onOutput }) }), fakePorts };
}

async function startLogged(kind: ServerKind): Promise<StartedServer> {
  const chunks: string[] = [];
  let write = (chunk: string): unknown => chunks.push(chunk);
  const started = await startKind(kind, (chunk) => write(chunk));
  const file = join(started.server.dataDir, OUTPUT_FILE);
  write = (chunk) => appendFileSync(file, chunk);
  write(chunks.join(""));
  return started;
}

/** Leases a server for exclusive use. `stop` returns it to the pool. */
export async function leaseServer(kind: ServerKind): Promise<LeasedServer> {
  const socketPath = process.env[POOL_SOCKET];
  if (socketPath === undefined) {
    // Benchmarks run without a pool.
    const { server, fakePorts } = await startKind(kind);
    return Object.assign(server, { fakePorts });
  }
  const file = findTestFile(new Error().stack);
  const request: LeaseRequest = { kind };
  const lease = (await call(socketPath, "/lease", request)) as Lease;
  const { id, url, dataDir, pid, fakePorts } = lease;
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
      const names = await endLease(await server.databaseUrl(), leasedAt);
      await call(socketPath, "/return", { id, file, names } satisfies LeaseReturn);
      return null;
    },
    kill: () => Promise.reject(new Error("this server is shared: start one with shared: false")),
  });
  return Object.assign(server, { fakePorts });
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

/** Relays of different files have the same ids, and a relay that has ever connected gets networks and TCP tunnels. */
const REMOVE_RELAYS = `
  begin;
  update tunnels set relay_id = null, public_port = null where relay_id is not null;
  update private_networks set relay_id = null, reserved_udp_port = null where relay_id is not null;
  delete from relay_ports;
  delete from relays;
  commit`;

/** @returns the names of tunnels and domains since then. */
async function endLease(databaseUrl: string, since: Date): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(REMOVE_RELAYS);
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
