/** What the failures of a local server become for the user: `problem` of the event `request`. The failures are real. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { ClientRequest } from "node:http";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { RequestReport } from "../../../../agent/library/types.ts";
import { FLAG, RESET } from "../../../../protocol/wire/frames.ts";
import { startScriptedTunnel } from "../../../harness/tunnel/scripted-tunnel.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(answer: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => answer(socket));
  });
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** The end of one request that fails. @param onConnected called before it is sent. */
async function failRequest(
  origin: number | string,
  flags: number,
  onConnected: () => void = () => undefined,
): Promise<{ report: RequestReport; outcome: unknown }> {
  await using tunnel = await startScriptedTunnel(origin);
  tunnel.agent.start();
  const connection = await tunnel.connection();
  onConnected();
  const reported = once(tunnel.agent, "request");
  connection.request(1, ["POST", "/", "host", "shop.localhost"], flags);
  const [[report], outcome] = await Promise.all([reported, connection.waitForOutcome(1)]);
  return { report: report as RequestReport, outcome };
}

/** @returns the problem of one request to this port. */
async function findProblem(port: number, flags: number): Promise<string | undefined> {
  return (await failRequest(port, flags)).report.problem;
}

const HEAD = "HTTP/1.1 200 OK\r\n";
const CLOSED = "the local server closed the connection before its response was complete";

describe("a request to a local server", () => {
  test.each<[string, (socket: Socket) => void, string]>([
    ["that closes the connection", (socket) => socket.end(), CLOSED],
    ["that resets the connection", (socket) => socket.resetAndDestroy(), CLOSED],
    [
      "that ends a response early",
      (socket) => socket.end(`${HEAD}content-length: 9\r\n\r\nabc`),
      CLOSED,
    ],
    ["of another protocol", (socket) => socket.end("220 smtp.test\r\n"), "not answer in HTTP/1.1"],
    [
      "with an invalid header",
      (socket) => socket.end(`${HEAD}a: x\u0001y\r\n\r\n`),
      "the local server's response is not valid HTTP/1.1: Invalid header value char",
    ],
    [
      "with an invalid status",
      (socket) => socket.end("HTTP/1.1 099 None\r\ncontent-length: 0\r\n\r\n"),
      "the local server's response is not valid HTTP/1.1",
    ],
    [
      "that switches to another protocol",
      (socket) =>
        socket.end("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
      "status 101",
    ],
    [
      "with too many headers",
      (socket) => socket.end(`${HEAD}a: ${"x".repeat(140_000)}\r\n\r\n`),
      "more than 128 KiB of headers",
    ],
    [
      "with too many small headers",
      (socket) => socket.end(`${HEAD}${"a: b\r\n".repeat(257)}\r\n`),
      "has 257 headers; a tunnel forwards at most 256",
    ],
    [
      "whose headers are too large as JSON",
      (socket) => socket.end(`${HEAD}a: ${'"'.repeat(70_000)}\r\n\r\n`),
      "more than 128 KiB of headers",
    ],
  ])("%s", async (_, answer, expected) => {
    expect(await findProblem(await listen(answer), FLAG.end)).toContain(expected);
  });

  test("that refuses a WebSocket with too many headers", async () => {
    const answer = `${HEAD}${"a: b\r\n".repeat(257)}\r\n`;
    const port = await listen((socket) => socket.end(answer));
    expect(await findProblem(port, FLAG.socket)).toContain("at most 256");
  });

  test("that does not run", async () => {
    const port = await listen(() => undefined);
    for (const server of servers.splice(0)) server.close();
    const expected = `nothing listens at http://127.0.0.1:${port}; start the local server, or name another port`;
    expect(await findProblem(port, FLAG.end)).toBe(expected);
    expect(await findProblem(port, FLAG.socket)).toBe(expected);
  });
});

test("a GET is sent again when the local server resets the kept-alive connection that it was sent on", async () => {
  let requests = 0;
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    let answered = 0;
    socket.on("data", () => {
      requests += 1;
      answered += 1;
      if (answered > 1) socket.resetAndDestroy();
      else socket.write(`${HEAD}content-length: 0\r\n\r\n`);
    });
  });
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  await using tunnel = await startScriptedTunnel((server.address() as AddressInfo).port);
  tunnel.agent.start();
  const connection = await tunnel.connection();
  for (const id of [1, 3]) {
    const reported = once(tunnel.agent, "request");
    connection.request(id, ["GET", "/", "host", "shop.localhost"], FLAG.end);
    expect((await reported)[0]).toMatchObject({ status: 200, problem: undefined });
  }
  expect(requests).toBe(3);
});

test("a request and a WebSocket to a host without an address are both unreachable", async () => {
  for (const flags of [FLAG.end, FLAG.socket]) {
    const { report, outcome } = await failRequest("local.invalid:80", flags);
    expect(report).toMatchObject({ status: 502, problem: expect.stringContaining("is not known") });
    expect(outcome).toEqual({ reset: RESET.originUnreachable });
  }
});

test("a WebSocket that the local server does not answer in time is reported with the status of its visitor", async () => {
  const passTime = (message: unknown): void =>
    void (message as { request: ClientRequest }).request.emit("timeout");
  try {
    const port = await listen(() => undefined);
    const { report, outcome } = await failRequest(port, FLAG.socket, () =>
      subscribe("http.client.request.start", passTime),
    );
    const problem = "the local server did not answer in time";
    expect(report).toMatchObject({ status: 504, problem });
    expect(outcome).toEqual({ reset: RESET.originTimeout });
  } finally {
    unsubscribe("http.client.request.start", passTime);
  }
});

test("a WebSocket to a local server that answers with an invalid handshake", async () => {
  const upgraded =
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n";
  const port = await listen((socket) => socket.end(`${upgraded}sec-websocket-accept: x\r\n\r\n`));
  expect(await findProblem(port, FLAG.socket)).toBe(
    "the local server's answer is not a valid WebSocket handshake",
  );
});
