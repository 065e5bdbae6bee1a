/** Agents and servers of different versions work together. */
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { FLAG, FRAME, FrameWriter, SUBPROTOCOL } from "../../../../protocol/wire/frames.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";
import { startScriptedTunnel } from "../../../harness/tunnel/scripted-tunnel.ts";

/** Written by releases/record.ts. */
const RECORDED_AGENT = join(import.meta.dirname, "releases/underpass.mjs.br");

let dir: string;
let api: TestApi;
let local: Server;
/** Runs the agent of the last release. */
let command: string[];

beforeAll(async () => {
  [dir, api] = await Promise.all([createTemporaryDir(), startApi()]);
  command = [process.execPath, join(dir, "underpass.mjs")];
  await writeFile(command[1]!, brotliDecompressSync(await readFile(RECORDED_AGENT)));
  local = createServer((_request, response) => response.end("hello"));
  new WebSocketServer({ server: local }).on("connection", (socket) =>
    socket.on("message", (message, binary) => socket.send(message, { binary })),
  );
  local.listen(0, "127.0.0.1");
  await once(local, "listening");
});
afterAll(async () => {
  await api.stop();
  local.closeAllConnections();
  local.close();
  await rm(dir, { recursive: true });
});

test("the agent of the last release serves requests and WebSockets with this server", async () => {
  const token = Buffer.from((await mintToken(await api.owner())).wireBytes, "base64");
  const { port } = local.address() as AddressInfo;
  const args = ["http", String(port), "--server", api.server.url, "--token-file", "TOKEN"];
  await using agent = await runAgent([...args, "--subdomain", "older-agent", "--json"], {
    command,
    token,
  });
  await agent.event("ready");
  const host = "older-agent.localhost";
  const response = await exchange(api.server.port, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect([response.status, response.body.toString()]).toEqual([200, "hello"]);
  const visitor = new WebSocket(`ws://127.0.0.1:${api.server.port}/`, { headers: { host } });
  await once(visitor, "open");
  visitor.send("echo");
  expect(String((await once(visitor, "message"))[0])).toBe("echo");
  const closed = once(visitor, "close");
  visitor.close(4321, "done");
  expect((await closed)[0]).toBe(4321);
});

describe("this agent with a server of an earlier version, which has no capabilities,", () => {
  /** Fields that later servers may add are ignored. */
  const announced = { capabilities: [], server: "underpass/0.1.0", addedLater: true };

  test("answers requests", async () => {
    const { port } = local.address() as AddressInfo;
    await using tunnel = await startScriptedTunnel(port, announced);
    tunnel.agent.start();
    const connection = await tunnel.connection();
    connection.request(1, ["GET", "/", "host", "shop.localhost"]);
    expect(await connection.waitForOutcome(1)).toEqual({ status: 200, body: "hello" });
  });

  test("forwards WebSockets", async () => {
    const { port } = local.address() as AddressInfo;
    await using tunnel = await startScriptedTunnel(port, announced);
    tunnel.agent.start();
    const connection = await tunnel.connection();
    connection.request(1, ["GET", "/", "host", "shop.localhost"], FLAG.socket);
    expect((await connection.next()).type).toBe(FRAME.response);
    connection.send((writer) => writer.writeText(FRAME.text, 0, 1, "echo"));
    const echo = await connection.next();
    expect([echo.type, Buffer.from(echo.payload).toString()]).toEqual([FRAME.text, "echo"]);
  });
});

describe("this server tells an agent of another version of the protocol which side to upgrade:", () => {
  test.each([
    [0, "the agent is too old: this server requires underpass.v1; upgrade the agent"],
    [2, "the server is too old for this agent: it requires underpass.v1; upgrade the server"],
  ])("version %i", async (protocol, explanation) => {
    const { wireBytes } = await mintToken(await api.owner());
    const address = `ws://127.0.0.1:${api.server.port}/agent/connect?protocol=http&port=3000`;
    const headers = { authorization: `Bearer ${wireBytes}` };
    const agent = new WebSocket(address, SUBPROTOCOL, { headers });
    await once(agent, "open");
    const writer = new FrameWriter();
    const windows = { streamWindow: 1, connectionWindow: 1 };
    const hello = { protocol, agent: "test", capabilities: [], ...windows };
    writer.writeJson(FRAME.hello, 0, 0, hello);
    agent.send(writer.take());
    const [code, reason] = (await once(agent, "close")) as [number, Buffer];
    expect([code, reason.toString()]).toEqual([
      CLOSE.unsupported_version,
      `unsupported_version: ${explanation}`,
    ]);
  });
});

test("an agent that is refused for its version ends, and says which side to upgrade", async () => {
  const explanation = "the agent is too old: this server requires underpass.v2; upgrade the agent";
  await using tunnel = await startScriptedTunnel(1);
  const rejected = once(tunnel.agent, "rejected");
  tunnel.agent.start();
  await tunnel.refuse("unsupported_version", explanation);
  const [rejection] = (await rejected) as [Error & { reason: string }];
  expect([rejection.reason, rejection.message]).toEqual(["unsupported_version", explanation]);
});
