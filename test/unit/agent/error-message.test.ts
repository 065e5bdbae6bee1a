/** What the errors of Node.js become for the user. The errors are real, where this machine can cause them. */
import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { fetch } from "undici";
import WebSocket from "ws";
import { getErrorMessage } from "../../../agent/error-message.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server): Promise<number> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const getFetchError = (url: string) =>
  fetch(url).then(
    () => "",
    (error: unknown) => getErrorMessage(error),
  );

async function getSocketError(url: string): Promise<string> {
  const [error] = (await once(new WebSocket(url), "error").catch((thrown: unknown) => [
    thrown,
  ])) as [unknown];
  return getErrorMessage(error);
}

test("a server that does not run", async () => {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, "close");
  const expected = `127.0.0.1:${port} refuses connections; check the address, and that the server runs`;
  expect(await getFetchError(`http://127.0.0.1:${port}`)).toBe(expected);
  expect(await getSocketError(`ws://127.0.0.1:${port}`)).toBe(expected);
});

test("a server that cuts the connection", async () => {
  const port = await listen(createServer((socket) => socket.destroy()));
  expect(await getFetchError(`http://127.0.0.1:${port}`)).toContain(
    "the connection was cut; check",
  );
});

test("a server that does not speak TLS", async () => {
  const port = await listen(createHttpServer());
  expect(await getFetchError(`https://127.0.0.1:${port}`)).toContain("does not speak TLS");
  expect(await getSocketError(`wss://127.0.0.1:${port}`)).toContain("does not speak TLS");
});

test.each([
  [404, "the server answered 404 instead of opening a WebSocket"],
  [407, "the proxy requires a password"],
])("a server or proxy that answers %i", async (status, expected) => {
  const server = createHttpServer((_, response) => response.writeHead(status).end());
  server.on("upgrade", (_, socket) => socket.end(`HTTP/1.1 ${status} No\r\n\r\n`));
  expect(await getSocketError(`ws://127.0.0.1:${await listen(server)}`)).toContain(expected);
});

test("a file that does not exist, and a directory", async () => {
  const getReadError = (path: string) =>
    readFile(path).catch((error: unknown) => getErrorMessage(error));
  expect(await getReadError("/no/such/file")).toBe("/no/such/file does not exist; check the path");
  if (process.platform !== "win32") {
    expect(await getReadError("/")).toBe("the path is a directory; name a file");
  }
});

test.each([
  [{ code: "ENOTFOUND", hostname: "a.test" }, "the host a.test does not exist; check the address"],
  [{ code: "EAI_AGAIN", hostname: "a.test" }, "the host a.test can't be looked up"],
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "certificate is not trusted"],
  [{ code: "CERT_HAS_EXPIRED" }, "check this machine's clock"],
  [{ code: "ERR_TLS_CERT_ALTNAME_INVALID" }, "for another host name"],
  [{ code: "ETIMEDOUT", address: "::1", port: 443 }, "[::1]:443 does not answer; check"],
  [{ code: "ENETUNREACH", address: "203.0.113.7", port: 443 }, "no route leads to 203.0.113.7:443"],
  [{ code: "ENOSPC", path: "/full/file" }, "there is no space left for /full/file"],
  [{ code: "EACCES", path: "/root/x" }, "this user may not use /root/x"],
])("%j is explained", (properties, expected) => {
  const error = Object.assign(new Error("the library's text"), properties);
  expect(getErrorMessage(new Error("fetch failed", { cause: error }))).toContain(expected);
});
