/** Agents and servers of different versions work together. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { formatCloseReason, type CloseSubcode } from "../../../../protocol/wire/close-reason.ts";
import { FLAG, FRAME, FrameWriter, SUBPROTOCOL } from "../../../../protocol/wire/frames.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";
import { AGENT_COMMAND, runAgent, runToEnd } from "../../../harness/tunnel/agent.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";
import { startScriptedTunnel } from "../../../harness/tunnel/scripted-tunnel.ts";
import { unpackRecordedAgent } from "./releases/recorded-agent.ts";

let dir: string;
let api: TestApi;
let local: Server;
/** Runs the agent of the last release. */
let command: string[];

beforeAll(async () => {
  [dir, api] = await Promise.all([createTemporaryDir(), startApi()]);
  command = await unpackRecordedAgent(dir);
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
    [
      0,
      "the agent is too old: this server requires underpass.v1; upgrade the agent [agent_too_old]",
    ],
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

/** A server that answers the first message of each agent with `answer`. */
async function startOtherServer(answer: (socket: WebSocket) => void) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => socket.once("message", () => answer(socket)));
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, "close");
    },
  };
}

/** Runs a command until it ends. @returns its exit code and the sentence that it prints. */
async function runWith(server: string, args: string[], command: string[]) {
  const all = [...args, "--server", server, "--token-file", "TOKEN"];
  const { code, stderr } = await runToEnd(all, { command, token: Buffer.from("token") });
  return [code, stderr.trim()];
}

const HTTP = ["http", "3000", "--inspect", "off"];
const TCP = ["tcp", "3000"];
const CONNECT = ["connect", "database", "--listen", "127.0.0.1:0"];
/** Every server has the agent of its own version. */
const getUpdate = ({ url }: { url: string }) =>
  `\nUpdate the agent: npm install --global ${url}/underpass.tgz`;

describe("a server that refuses the agent's version ends the command with 1 and a sentence:", () => {
  const TOO_OLD = "the agent is too old: this server requires underpass.v2; upgrade the agent";
  const TOO_NEW =
    "the server is too old for this agent: it requires underpass.v0; upgrade the server";
  const refuse = (message: string, subcode?: CloseSubcode) =>
    startOtherServer((socket) =>
      socket.close(
        CLOSE.unsupported_version,
        formatCloseReason("unsupported_version", message, subcode),
      ),
    );

  test.each([
    ["http", HTTP],
    ["tcp", TCP],
    ["connect", CONNECT],
  ])("%s", async (_, args) => {
    await using newer = await refuse(TOO_OLD, "agent_too_old");
    await using older = await refuse(TOO_NEW);
    const ends = [newer, older].map(({ url }) => runWith(url, args, AGENT_COMMAND));
    expect(await Promise.all(ends)).toEqual([
      [1, `underpass: unsupported_version: ${TOO_OLD}${getUpdate(newer)}`],
      [1, `underpass: unsupported_version: ${TOO_NEW}`],
    ]);
  });

  test("http of the last release", async () => {
    await using newer = await refuse(TOO_OLD, "agent_too_old");
    const [code, printed] = await runWith(newer.url, ["http", "3000"], command);
    expect([code, printed]).toEqual([1, expect.stringContaining(TOO_OLD)]);
  });
});

describe("a server whose welcome has another version ends the command with 1 and a sentence:", () => {
  // The other fields may have changed with the version.
  const welcome = (protocol: number) =>
    startOtherServer((socket) => {
      const writer = new FrameWriter();
      writer.writeJson(FRAME.welcome, 0, 0, { protocol });
      socket.send(writer.take());
    });

  test.each([
    ["http", HTTP],
    ["connect", CONNECT],
  ])("%s", async (_, args) => {
    await using newer = await welcome(2);
    await using older = await welcome(0);
    const ends = [newer, older].map(({ url }) => runWith(url, args, AGENT_COMMAND));
    const speaks = (version: number) => `speaks version ${version} of the protocol; upgrade the`;
    expect(await Promise.all(ends)).toEqual([
      [
        1,
        `underpass: unsupported_version: the agent is too old for this server, which ${speaks(2)} agent${getUpdate(newer)}`,
      ],
      [
        1,
        `underpass: unsupported_version: the server is too old for this agent: it ${speaks(0)} server`,
      ],
    ]);
  });
});

test("a server that opens WebSockets of another kind is named as such, and tried again", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: () => false });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const args = [...HTTP, "--json", "--server", `http://127.0.0.1:${port}`, "--token-file", "TOKEN"];
  await using agent = await runAgent(args, { token: Buffer.from("token") });
  expect(await agent.event("retrying")).toMatchObject({
    reason: "the server is not an Underpass server; check the address, and proxies on the way",
  });
  for (const socket of server.clients) socket.terminate();
  server.close();
});
