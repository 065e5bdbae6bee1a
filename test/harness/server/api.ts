/**
 * Callers of the API for tests: people with accounts in organizations, and machines with tokens. The API is that of a
 * complete self-hosted server, whose database a test can query.
 */
import { toDiskPath, type DiskShortage } from "../../../protocol/self-host/disk-shortage.ts";
import { readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import pg from "pg";
import { WebSocket } from "ws";
import {
  FRAME,
  FrameWriter,
  PING,
  PROTOCOL_VERSION,
  SUBPROTOCOL,
  type Hello,
} from "../../../protocol/wire/frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_INTERVAL_MS,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";
import type { AccountSummary } from "../../../protocol/schemas/accounts/accounts.ts";
import type { MintedToken } from "../../../protocol/schemas/tokens.ts";
import { requireContract } from "../contract/responses.ts";
import { insertAccount, PASSWORD, readEncryptionConfig } from "./accounts.ts";
import type { FakePorts, ServerKind } from "./server-kinds.ts";
import { leaseServer } from "./server-pool.ts";
import { type ServerOptions, startServer, type TestServer } from "./server.ts";

export interface Reply<Body> {
  status: number;
  body: Body;
  headers: Headers;
}

export interface Caller {
  get<Body>(path: string): Promise<Reply<Body>>;
  post<Body>(path: string, body?: unknown): Promise<Reply<Body>>;
  put<Body>(path: string, body: unknown): Promise<Reply<Body>>;
  patch<Body>(path: string, body: unknown): Promise<Reply<Body>>;
  delete<Body>(path: string): Promise<Reply<Body>>;
  send<Body>(method: string, path: string, init?: RequestInit): Promise<Reply<Body>>;
}

export interface Person extends Caller {
  email: string;
  password: string;
  userId: string;
  orgId: string;
  accessToken: string;
  /** `qnt_refresh=…`, as a browser sends it back. */
  cookie: string;
}

export type Role = "viewer" | "member" | "admin" | "owner";

/** The outcome of an agent's attempt to connect. */
export interface ConnectionAttempt {
  /** Set while the connection is open. */
  socket: WebSocket | undefined;
  protocol: string;
  code?: number;
  reason?: string;
}

/** The connection of an agent that was accepted. @throws Error with the close code of one that was refused. */
export function getSocket({ socket, code, reason }: ConnectionAttempt): WebSocket {
  if (socket) return socket;
  throw new Error(`the agent was refused: ${code} ${reason}`);
}

export interface TestApi extends AsyncDisposable {
  server: TestServer;
  /** Where a shared server expects the fakes of other services. They must be stopped before it. */
  readonly fakePorts: FakePorts;
  /** A caller without any credentials. */
  anonymous: Caller;
  /** Creates a person with an account and an organization who has logged in. */
  owner(): Promise<Person>;
  /** Creates one by the same requests as a person's: signs up, verifies the address with the mailed code and logs in. */
  signUp(): Promise<Person>;
  /** Creates another person in the organization of `of`. */
  colleague(of: Person, role: Role): Promise<Person>;
  logIn(email: string, password: string): Promise<Person>;
  /** The newest code that was mailed to an address. */
  getMailedCode(email: string): Promise<string>;
  readMailsTo(email: string): Promise<string[]>;
  sql: <Row>(text: string, values?: unknown[]) => Promise<Row[]>;
  connectAgent(
    bearer: string | undefined,
    query: Record<string, string | number>,
    options?: { protocols?: string[]; headers?: Record<string, string> },
  ): Promise<ConnectionAttempt>;
  /** Runs the scheduled job, which otherwise runs once a minute. */
  runCron(): Promise<void>;
  /** Tells the API for ten seconds that the disk is almost full, or full. */
  reportDisk(shortage: DiskShortage): Promise<void>;
  stop(): Promise<void>;
}

export { PASSWORD };
let people = 0;

export function newEmail(): string {
  people += 1;
  return `person-${people}-${crypto.randomUUID().slice(0, 8)}@example.com`;
}

/** An address in a network of its own: limits count networks of IPv6. */
export function newAddress(): string {
  return `fd00:${crypto.randomUUID().slice(0, 8).replace(/^..../, "$&:")}::1`;
}

/** Uses a server of this kind from the pool, which other test files have used before. */
interface SharedApiOptions {
  kind: ServerKind;
}

interface OwnApiOptions extends ServerOptions {
  /** Starts a server with default settings that no other test file uses. */
  shared?: false;
}

export type ApiOptions = SharedApiOptions | OwnApiOptions;

/** Without options, the server is a shared one of the kind `standard`. */
export async function startApi(options: ApiOptions = {}): Promise<TestApi> {
  const own: OwnApiOptions = "kind" in options ? {} : options;
  const kind = "kind" in options ? options.kind : "standard";
  const leased = Object.keys(own).length === 0 ? await leaseServer(kind) : undefined;
  const server = leased ?? (await startServer(own));
  const database = new pg.Client({ connectionString: await server.databaseUrl() });
  await database.connect();
  // When the server stops, this idle connection breaks.
  database.on("error", () => {});
  // Behind a proxy, limits by address count the requests of this file alone, except those that prepare a person.
  const forwarded: Record<string, string> =
    kind === "public" ? { "x-forwarded-for": newAddress() } : {};
  const anonymous = createCaller(server, forwarded);
  const fromNewAddress = () => createCaller(server, { "x-forwarded-for": newAddress() });
  let config: ReturnType<typeof readEncryptionConfig> | undefined;

  /** By file, which never changes. A shared server has hundreds of mails. */
  const mailByName = new Map<string, Promise<string>>();
  async function readMailsTo(email: string): Promise<string[]> {
    const dir = join(server.dataDir, "mail");
    const names = await readdir(dir).catch(() => []);
    const stored = names.filter((name) => name.endsWith(".eml")).sort();
    for (const name of stored) {
      if (!mailByName.has(name)) mailByName.set(name, readFile(join(dir, name), "utf8"));
    }
    const mails = await Promise.all(stored.map((name) => mailByName.get(name)!));
    return mails.filter((mail) => mail.includes(`To: ${email}`));
  }

  async function getMailedCode(email: string): Promise<string> {
    return waitUntil(
      async () => /^Subject: (\d{6}) /m.exec((await readMailsTo(email)).at(-1) ?? "")?.[1],
    );
  }

  async function logIn(email: string, password: string): Promise<Person> {
    const login = { email, password };
    const { status, body, headers } = await fromNewAddress().post<AccountSummary>(
      "/auth/login",
      login,
    );
    if (status !== 200) throw new Error(`login: ${status} ${JSON.stringify(body)}`);
    return {
      ...createCaller(server, { ...forwarded, authorization: `Bearer ${body.access_token}` }),
      email,
      password,
      userId: body.user.id,
      orgId: body.active_org.id,
      accessToken: body.access_token,
      cookie: getFirstCookie(headers),
    };
  }

  async function createAccount(): Promise<string> {
    const email = newEmail();
    config ??= readEncryptionConfig(server.dataDir, own.env);
    const query = (text: string, values: unknown[]) => database.query(text, values);
    const code = await insertAccount(query, await config, email);
    await fromNewAddress().post("/auth/verify-email-otp", { email, code });
    return email;
  }

  async function owner(): Promise<Person> {
    return logIn(await createAccount(), PASSWORD);
  }

  async function signUp(): Promise<Person> {
    const email = newEmail();
    await anonymous.post("/auth/signup", { email, password: PASSWORD });
    await anonymous.post("/auth/verify-email-otp", { email, code: await getMailedCode(email) });
    return logIn(email, PASSWORD);
  }

  async function colleague(of: Person, role: Role): Promise<Person> {
    const email = await createAccount();
    await database.query(
      `update memberships set org_id = $1, role = $2
       where user_id = (select id from users where email = $3)`,
      [of.orgId, role, email],
    );
    return logIn(email, PASSWORD);
  }

  async function stop(): Promise<void> {
    await database.end();
    await server.stop();
  }

  return {
    server,
    get fakePorts() {
      if (leased === undefined) throw new Error("only shared servers expect fakes");
      return leased.fakePorts;
    },
    anonymous,
    owner,
    signUp,
    colleague,
    logIn,
    getMailedCode,
    readMailsTo,
    async sql<Row>(text: string, values: unknown[] = []) {
      return (await database.query(text, values)).rows as Row[];
    },
    connectAgent: (bearer, query, { protocols = [SUBPROTOCOL], headers = {} } = {}) =>
      connectAgent(server, bearer, query, { protocols, headers }),
    runCron: () => postToControl(server, "/cron"),
    reportDisk: (shortage) => postToControl(server, toDiskPath(shortage)),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

export function createCaller(
  server: Pick<TestServer, "url">,
  headers: Record<string, string>,
): Caller {
  async function send<Body>(
    method: string,
    path: string,
    init: RequestInit = {},
  ): Promise<Reply<Body>> {
    const response = await fetch(server.url + path, {
      method,
      redirect: "manual",
      ...init,
      headers: { ...headers, ...(init.headers as Record<string, string> | undefined) },
    });
    const text = await response.text();
    const { status, headers: received } = response;
    const isJson = received.get("content-type")?.startsWith("application/json");
    const body = (isJson ? JSON.parse(text) : text) as Body;
    const sent = typeof init.body === "string" ? init.body : undefined;
    await requireContract(server.url, { method, path, sent, status, headers: received, body });
    return { status, body, headers: received };
  }
  const json = (body: unknown): RequestInit => ({
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return {
    send,
    get: (path) => send("GET", path),
    delete: (path) => send("DELETE", path),
    put: (path, body) => send("PUT", path, json(body)),
    patch: (path, body) => send("PATCH", path, json(body)),
    post: (path, body) => send("POST", path, body === undefined ? {} : json(body)),
  };
}

/** `name=value` of the first cookie that a response sets. */
export function getFirstCookie(headers: Headers): string {
  return headers.getSetCookie()[0]?.split(";")[0] ?? "";
}

export async function mintToken(person: Person, scope: object = {}): Promise<MintedToken> {
  const reply = await person.post<MintedToken>("/tokens", { name: "test", ...scope });
  if (reply.status !== 200) throw new Error(`no token: ${JSON.stringify(reply.body)}`);
  return reply.body;
}

/** Sends what only the server itself sends. */
function postToControl(server: TestServer, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socketPath = join(server.dataDir, "run/control.sock");
    request({ socketPath, method: "POST", path }, (response) => {
      response.resume();
      response.on("end", () => {
        const isSuccess = response.statusCode === 200 || response.statusCode === 204;
        if (isSuccess) resolve();
        else reject(new Error(`${path}: ${response.statusCode}`));
      });
    })
      .on("error", reject)
      .end();
  });
}

/** Connects and sends the hello of an agent. Resolves after the welcome, or with the close code. */
function connectAgent(
  server: TestServer,
  bearer: string | undefined,
  query: Record<string, string | number>,
  { protocols, headers }: { protocols: string[]; headers: Record<string, string> },
): Promise<ConnectionAttempt> {
  const params = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const socket = new WebSocket(
    `ws://127.0.0.1:${server.port}/agent/connect?${params.toString()}`,
    protocols,
    {
      headers: { ...headers, ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) },
      perMessageDeflate: false,
    },
  );
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    // An agent that sends nothing for long is disconnected.
    const heartbeat = setInterval(() => {
      if (socket.readyState === WebSocket.OPEN) socket.send(PING);
    }, HEARTBEAT_INTERVAL_MS);
    socket.on("close", () => clearInterval(heartbeat));
    socket.on("open", () => socket.send(hello()));
    socket.once("message", () => resolve({ socket, protocol: socket.protocol }));
    socket.on("close", (code, reason) => {
      resolve({ socket: undefined, protocol: socket.protocol, code, reason: reason.toString() });
    });
  });
}

function hello(): Uint8Array {
  const writer = new FrameWriter();
  writer.writeJson(FRAME.hello, 0, 0, {
    protocol: PROTOCOL_VERSION,
    agent: "test",
    capabilities: [],
    streamWindow: STREAM_WINDOW_BYTES,
    connectionWindow: CONNECTION_WINDOW_BYTES,
  } satisfies Hello);
  return writer.take();
}

/** Repeats `ask` until it returns a value that is not undefined, null or false. */
export async function waitUntil<Value>(
  ask: () => Promise<Value | undefined | null | false>,
  maxMs = 60_000,
): Promise<Value> {
  const deadline = Date.now() + maxMs;
  for (;;) {
    const value = await ask();
    if (value !== undefined && value !== null && value !== false) return value;
    if (Date.now() > deadline) throw new Error(`no answer within ${maxMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Waits until a statement of the server waits for a lock that the transaction of `api.sql` holds. */
export async function waitForBlockedStatement(api: TestApi, count = 1): Promise<void> {
  await waitUntil(async () => {
    // PostgreSQL reads the activity of other connections once in a transaction.
    await api.sql("select pg_stat_clear_snapshot()");
    const rows = await api.sql("select 1 from pg_stat_activity where wait_event_type = 'Lock'");
    return rows.length >= count;
  });
}
