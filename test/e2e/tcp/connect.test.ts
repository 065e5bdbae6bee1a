/** `underpass connect` end to end: a local port that leads to a TCP tunnel over the API's own address. */
import { createHash, randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Socket } from "node:net";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createTemporaryDir } from "../../harness/directories.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import {
  startEcho,
  startLocalServer,
  startTcpStack,
  type TcpStack,
} from "../../harness/relay/tcp/stack.ts";
import { waitForEnd, readAll, readExactly } from "../../harness/relay/tcp/tunnel-port.ts";
import { unpackRecordedAgent } from "../agent/package/releases/recorded-agent.ts";

const MiB = 1024 * 1024;

let stack: TcpStack;
beforeAll(async () => {
  stack = await startTcpStack({ address: "127.0.0.1", ports: 20 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test("a PostgreSQL client works through the local port", async () => {
  const url = new URL(await stack.api.server.databaseUrl());
  await using tunnel = await stack.serve(Number(url.port), ["--subdomain", "database"]);
  await using local = await stack.connect("database");
  url.port = String(local.port);
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  const { rows } = await client.query<{ n: string }>(
    "select count(*) as n from generate_series(1, 100000)",
  );
  expect(rows).toEqual([{ n: "100000" }]);
  await client.end();
  expect(await tunnel.event("connection")).toMatchObject({ via: "connect" });
});

test("a private tunnel has no public port, and `underpass connect` reaches it", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port, ["--subdomain", "vault", "--private"]);
  expect(tunnel.publicPort).toBeUndefined();
  expect(await tunnel.event("ready")).toMatchObject({
    url: null,
    connect: "underpass connect vault",
  });
  await using local = await stack.connect("vault");
  const client = await local.visit();
  client.end("secret");
  expect(String(await readAll(client))).toBe("secret");
});

test("20 MiB each way, more than any window, arrive complete at the same time, and each direction ends separately", async () => {
  await using echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  await using local = await stack.connect(tunnel.tunnelId);
  const client = await local.visit();
  const payload = randomBytes(20 * MiB);
  client.end(payload);
  const received = await readAll(client);
  expect(createHash("sha256").update(received).digest("hex")).toBe(
    createHash("sha256").update(payload).digest("hex"),
  );
  expect(await local.event("connection")).toMatchObject({
    bytesIn: payload.length,
    bytesOut: payload.length,
  });
});

test("data sent after the other side's end still arrives, in both directions", async () => {
  await using server = await startLocalServer((socket) => {
    socket.write("220 ready\n");
    // The command itself closes its first connection at once.
    void readAll(socket).then(
      (bytes) => socket.end(`read ${bytes.length}`),
      () => undefined,
    );
  });
  await using tunnel = await stack.serve(server.port);
  await using local = await stack.connect(tunnel.tunnelId);
  const client = await local.visit();
  expect(String(await readExactly(client, 10))).toBe("220 ready\n");
  client.end(Buffer.alloc(300_000));
  expect(String(await readAll(client))).toBe("read 300000");
});

test("a reset of either side resets the other", async () => {
  await using server = await startLocalServer((socket) =>
    socket.once("data", (bytes) => String(bytes) === "break" && socket.resetAndDestroy()),
  );
  await using tunnel = await stack.serve(server.port);
  await using local = await stack.connect(tunnel.tunnelId);
  const client = await local.visit();
  client.write("break");
  expect(await waitForEnd(client)).toBe("ECONNRESET");
  const other = await local.visit();
  other.write("hello");
  await vi.waitUntil(() => server.sockets.size === 1, WAIT_OPTIONS);
  const [socket] = server.sockets;
  const end = waitForEnd(socket!);
  other.resetAndDestroy();
  expect(await end).toBe("ECONNRESET");
});

test("a reader that reads nothing stops the sender, and loses nothing", async () => {
  const bytes = 48 * MiB;
  await using server = await startLocalServer(
    (socket) => void socket.end(Buffer.alloc(bytes, "a")),
  );
  await using tunnel = await stack.serve(server.port);
  await using local = await stack.connect(tunnel.tunnelId);
  const client = await local.visit();
  await vi.waitUntil(() => client.readableLength > 0, WAIT_OPTIONS);
  expect((await readAll(client)).length).toBe(bytes);
});

test("while nothing listens behind the tunnel, local connections are reset and the reason is reported", async () => {
  const echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  await using local = await stack.connect(tunnel.tunnelId);
  await echo[Symbol.asyncDispose]();
  expect(await waitForEnd(await local.visit())).toBe("ECONNRESET");
  expect(await local.event("connection")).toMatchObject({
    problem: `at the tunnel's agent, nothing listens at localhost:${echo.port}; start the local server, or name another port`,
  });
});

test("without --listen the tunnel's own port is used", async () => {
  const echo = await startEcho();
  await using tunnel = await stack.serve(echo.port);
  await echo[Symbol.asyncDispose]();
  await using local = await stack.connect(tunnel.tunnelId, []);
  expect(local.port).toBe(echo.port);
});

test("without --listen the command asks for a port when the tunnel's local server has none", async () => {
  await using _tunnel = await stack.serve("unix:/run/db.sock", ["--subdomain", "socket-db"]);
  const args = ["connect", "socket-db", "--server", stack.api.server.url, "--token-file", "TOKEN"];
  await using agent = await runAgent(args, { token: stack.token });
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toBe(
    "underpass: the tunnel's local server has no port that this command could listen on; choose one, for example: --listen 127.0.0.1:5433\n",
  );
});

test("for an unknown tunnel the command exits with 1", async () => {
  const args = ["connect", "nothing-of-that-name", "--listen", "0", "--token-file", "TOKEN"];
  await using agent = await runAgent([...args, "--server", stack.api.server.url], {
    token: stack.token,
  });
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toBe(
    "underpass: not_found: there is no tunnel with this id or subdomain\nCheck the tunnel's name or id: `underpass tunnels` lists them.\n",
  );
});

test("for an HTTP tunnel the command says how it is used", async () => {
  const tunnel = { subdomain: "connect-to-http", localPort: 1 };
  await stack.owner.post("/tunnels", tunnel);
  const args = ["connect", "connect-to-http", "--listen", "0", "--token-file", "TOKEN"];
  await using agent = await runAgent([...args, "--server", stack.api.server.url], {
    token: stack.token,
  });
  expect(await agent.exit).toBe(1);
  expect(agent.stderr).toBe(
    "underpass: invalid_request: the tunnel is an HTTP tunnel, not a TCP tunnel\nOpen its URL in a browser: `underpass tunnels` lists the URLs.\n",
  );
});

describe("with the agent of the last release", () => {
  let dir: string;
  let command: string[];
  beforeAll(async () => {
    dir = await createTemporaryDir();
    command = await unpackRecordedAgent(dir);
  });
  afterAll(() => rm(dir, { recursive: true }));

  const echo = async (socket: Socket): Promise<string> => {
    socket.end("hello");
    return String(await readAll(socket));
  };

  test("its `tcp` serves visitors of the public port, and clients of this version's `connect`", async () => {
    await using server = await startEcho();
    await using tunnel = await stack.serve(server.port, [], { command });
    expect(await echo(await tunnel.visit())).toBe("hello");
    await using local = await stack.connect(tunnel.tunnelId);
    expect(await echo(await local.visit())).toBe("hello");
  });

  test("its `connect` reaches this version's `tcp`", async () => {
    await using server = await startEcho();
    await using tunnel = await stack.serve(server.port);
    await using local = await stack.connect(tunnel.tunnelId, undefined, { command });
    expect(await echo(await local.visit())).toBe("hello");
  });
});
