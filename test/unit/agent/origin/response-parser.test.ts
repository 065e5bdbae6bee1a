/** Responses that local servers may send, and that undici alone would not accept. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OriginServer } from "../../../../agent/origin/origin-server.ts";
import { parseTarget } from "../../../../agent/origin/target.ts";

const BODY = "a".repeat(1_000);

let server: Server;
let answer: string;
let origin: OriginServer;

beforeEach(async () => {
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  origin = new OriginServer(
    parseTarget(`http://127.0.0.1:${port}`)!,
    {},
    {
      onRequestFinished: () => undefined,
      onStreamOpened: () => undefined,
      onStreamClosed: () => undefined,
      onUnreachable: () => undefined,
      onListeningChanged: () => undefined,
      onNotice: () => undefined,
      onLocalError: () => undefined,
    },
  );
});
afterEach(async () => {
  await origin.close();
  server.close();
  await once(server, "close");
});

/** Requests a response, and tells the server after each part of it to wait. @returns the body. */
function request(): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let body = "";
  origin.dispatch(
    { path: "/", method: "GET", headers: [] },
    {
      onConnect: () => undefined,
      onHeaders: () => true,
      onData(chunk) {
        body += chunk.toString();
        return false;
      },
      onComplete: () => resolve(body),
      onError: reject,
    },
  );
  return promise;
}

describe("a response that waits when its server closes the connection is complete", () => {
  test.each([
    [
      "with a length",
      `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
    ],
    ["of HTTP/1.0", `HTTP/1.0 200 OK\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`],
    ["that ends with the connection", `HTTP/1.1 200 OK\r\n\r\n${BODY}`],
  ])("%s", async (_, text) => {
    answer = text;
    expect(await request()).toBe(BODY);
  });
});

test("one that is cut fails", async () => {
  answer = `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${BODY.length + 1}\r\n\r\n${BODY}`;
  await expect(request()).rejects.toThrow();
});

describe("the response is complete", () => {
  test.each([
    [
      "after a 100 that was not asked for",
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n`,
      BODY,
    ],
    ["after other interim responses", `HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n`, BODY],
    ["of a 304 with the length of the resource", `HTTP/1.1 304 Not Modified\r\n`, ""],
    ["of a 204 with a length", `HTTP/1.1 204 No Content\r\n`, ""],
  ])("%s", async (_, start, body) => {
    answer = `${start}Connection: close\r\nContent-Length: ${BODY.length}\r\n\r\n${body}`;
    expect(await request()).toBe(body);
  });
});
