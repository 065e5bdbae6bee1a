/** The proxy of the environment: requests to the API and WebSockets find the same one, and say the same about its failures. */
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { z } from "zod";
import { explainError } from "../../../../agent/error-message.ts";
import { TrustedAuthorities } from "../../../../agent/outgoing/trusted-authorities.ts";
import { ServiceApi } from "../../../../agent/service-api.ts";
import { openWebSocket } from "../../../../agent/websocket.ts";
import { createCertificate, type Certificate } from "../../../harness/fakes/certificate.ts";
import { startConnectProxy } from "../../../harness/fakes/connect-proxy.ts";
import { reservePort } from "../../../harness/ports.ts";

const VARIABLES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];
beforeEach(() => {
  for (const name of VARIABLES) {
    vi.stubEnv(name, "");
    vi.stubEnv(name.toUpperCase(), "");
  }
});
afterEach(() => vi.unstubAllEnvs());

/** A server that answers requests with `"requested"`, and WebSockets with `opened`. */
async function startServer(certificate?: Certificate) {
  const server = certificate ? createHttpsServer(certificate) : createServer();
  server.on("request", (_, response) => response.end('"requested"'));
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => socket.send("opened"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    url: `${certificate ? "https" : "http"}://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** @returns the body of the answer, or the message of the error. */
function request(server: string, authorities?: TrustedAuthorities): Promise<string> {
  const api = new ServiceApi({ server: new URL(server), authorities }, "token");
  const { signal } = new AbortController();
  return api.call(z.string(), "GET", "/", { signal }).catch(explainError);
}

/** @returns the first message, or the message of the error. */
function open(server: string, authorities?: TrustedAuthorities): Promise<string> {
  const url = new URL(server.replace(/^http/, "ws"));
  const socket = openWebSocket(url, "test", "token", { authorities });
  return new Promise((resolve) => {
    socket.on("message", (data: Buffer) => {
      resolve(data.toString());
      socket.terminate();
    });
    socket.on("error", (error) => resolve(explainError(error)));
  });
}

describe("requests and WebSockets", () => {
  test.each(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])(
    "use the proxy of %s with its user name and password",
    async (variable) => {
      await using server = await startServer();
      await using proxy = await startConnectProxy({ credentials: "ada:p@ss word" });
      vi.stubEnv(variable, proxy.url.replace("//", "//ada:p%40ss%20word@"));
      expect([await request(server.url), await open(server.url)]).toEqual(["requested", "opened"]);
      expect(proxy.targets).toEqual([server.host, server.host]);
    },
  );

  test.each(["https_proxy", "HTTPS_PROXY"])("to an https server use %s", async (variable) => {
    const authority = createCertificate({ commonName: "Test Authority" });
    await using server = await startServer(createCertificate({ issuer: authority }));
    await using proxy = await startConnectProxy();
    vi.stubEnv(variable, proxy.url);
    const authorities = new TrustedAuthorities([authority.cert]);
    expect([await request(server.url, authorities), await open(server.url, authorities)]).toEqual([
      "requested",
      "opened",
    ]);
    expect(proxy.targets).toEqual([server.host, server.host]);
    for (const message of [await request(server.url), await open(server.url)])
      expect(message).toMatch(/^the server's certificate is not trusted; .*--ca-file/);
  });

  test.each(["no_proxy", "NO_PROXY"])("are direct to a server in %s", async (variable) => {
    await using server = await startServer();
    await using proxy = await startConnectProxy();
    vi.stubEnv("HTTP_PROXY", proxy.url);
    vi.stubEnv(variable, "example.com,127.0.0.1");
    expect([await request(server.url), await open(server.url)]).toEqual(["requested", "opened"]);
    expect(proxy.targets).toEqual([]);
  });

  test("use an address without a scheme as an HTTP proxy", async () => {
    const authority = createCertificate({ commonName: "Test Authority" });
    await using server = await startServer(createCertificate({ issuer: authority }));
    await using proxy = await startConnectProxy();
    vi.stubEnv("HTTPS_PROXY", `127.0.0.1:${proxy.port}`);
    const authorities = new TrustedAuthorities([authority.cert]);
    expect(await request(server.url, authorities)).toBe("requested");
    expect(await open(server.url, authorities)).toBe("opened");
  });

  test("use a proxy that answers any status of success", async () => {
    await using server = await startServer();
    await using proxy = await startConnectProxy({ success: "204 Connected" });
    vi.stubEnv("HTTP_PROXY", proxy.url);
    expect([await request(server.url), await open(server.url)]).toEqual(["requested", "opened"]);
  });

  test("trust the certificate of a proxy that speaks TLS only through the CA file", async () => {
    const authority = createCertificate({ commonName: "Proxy Authority" });
    await using server = await startServer();
    await using proxy = await startConnectProxy({
      certificate: createCertificate({ issuer: authority }),
    });
    vi.stubEnv("HTTP_PROXY", proxy.url);
    const authorities = new TrustedAuthorities([authority.cert]);
    expect([await request(server.url, authorities), await open(server.url, authorities)]).toEqual([
      "requested",
      "opened",
    ]);
    for (const message of [await request(server.url), await open(server.url)])
      expect(message).toMatch(/^the proxy https:.* has a certificate that is not trusted; pass/);
  });
});

describe("the same sentence for requests and WebSockets tells about", () => {
  const SERVER = "http://tunnels.example.com";

  /** @param address of the proxy, with credentials or without. */
  async function expectMessage(address: string, expected: string): Promise<void> {
    vi.stubEnv("HTTP_PROXY", address);
    expect([await request(SERVER), await open(SERVER)]).toEqual([expected, expected]);
  }

  test.each([
    [
      "a proxy that requires a password",
      "407 Proxy Authentication Required",
      "",
      "requires a user name and a password (407); add them to HTTP_PROXY: http://USER:PASSWORD@PROXY",
    ],
    [
      "a wrong password",
      "407 Proxy Authentication Required",
      "ada:secret@",
      "does not accept the user name and password in HTTP_PROXY (407); correct them there, with special characters percent-encoded",
    ],
    [
      "a proxy that does not allow the server",
      "403 Forbidden",
      "ada:secret@",
      "does not allow connections to tunnels.example.com:80 (403); ask its administrator to allow CONNECT to tunnels.example.com:80, or add tunnels.example.com to NO_PROXY",
    ],
    [
      "a proxy that can't reach the server",
      "502 Bad Gateway",
      "ada:secret@",
      "can't reach tunnels.example.com:80 (502); check the server's address, or add tunnels.example.com to NO_PROXY",
    ],
  ])("%s", async (_, refusal, credentials, expected) => {
    await using proxy = await startConnectProxy({ refusal });
    const host = `127.0.0.1:${proxy.port}`;
    await expectMessage(
      `http://${credentials}${host}`,
      `the proxy http://${host} (HTTP_PROXY) ${expected.replace("@PROXY", `@${host}`)}`,
    );
  });

  test("a proxy that does not run", async () => {
    const host = `127.0.0.1:${await reservePort()}`;
    await expectMessage(
      `http://ada:secret@${host}`,
      `the proxy http://${host} (HTTP_PROXY) refuses connections; correct HTTP_PROXY, or add tunnels.example.com to NO_PROXY`,
    );
  });

  test("a proxy whose name does not exist", () =>
    expectMessage(
      "http://ada:secret@proxy.invalid:3128",
      "the proxy http://proxy.invalid:3128 (HTTP_PROXY) has a name that can't be resolved; correct HTTP_PROXY, or add tunnels.example.com to NO_PROXY",
    ));

  test.each([
    ["SSH-2.0-OpenSSH_9.6\r\n\r\n", "does not answer like an HTTP proxy"],
    ["", "closes the connection without an answer"],
  ])("a proxy that answers %j", async (answer, expected) => {
    await using other = createTcpServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end(answer));
    }).listen(0, "127.0.0.1");
    await once(other, "listening");
    const host = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    await expectMessage(
      `http://ada:secret@${host}`,
      `the proxy http://${host} (HTTP_PROXY) ${expected}; correct HTTP_PROXY, or add tunnels.example.com to NO_PROXY`,
    );
  });

  test.each([
    [
      "socks5://ada:secret@127.0.0.1:1080",
      "HTTP_PROXY names a proxy of the kind socks5, which the agent does not support; set it to the URL of an HTTP proxy, or add tunnels.example.com to NO_PROXY",
    ],
    [
      "http://ada:secret@:3128:1",
      "HTTP_PROXY is not a URL; set it to the URL of an HTTP proxy, such as http://proxy:3128",
    ],
    [
      "http://ada:50%secret@127.0.0.1:3128",
      "the user name or password in HTTP_PROXY is not percent-encoded; write %25 for each % of it",
    ],
  ])("the address %s", expectMessage);
});
