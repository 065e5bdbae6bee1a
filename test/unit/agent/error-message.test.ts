/** What the errors of Node.js become for the user. The errors are real, where this machine can cause them. */
import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { fetch } from "undici";
import WebSocket from "ws";
import { getErrorMessage } from "../../../agent/error-message.ts";
import { describeOriginError } from "../../../agent/origin/origin-error.ts";
import { formatRejection } from "../../../agent/output/output.ts";
import { CLOSE, shouldReconnect } from "../../../protocol/wire/close-codes.ts";

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
    "the connection was closed; check",
  );
});

test("a server that does not speak TLS", async () => {
  const port = await listen(createHttpServer());
  expect(await getFetchError(`https://127.0.0.1:${port}`)).toContain("does not speak TLS");
  expect(await getSocketError(`wss://127.0.0.1:${port}`)).toContain("does not speak TLS");
});

test("a server that answers a WebSocket with a status", async () => {
  const server = createHttpServer((_, response) => response.writeHead(404).end());
  server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 404 No\r\n\r\n"));
  expect(await getSocketError(`ws://127.0.0.1:${await listen(server)}`)).toContain(
    "the server answered 404 instead of opening a WebSocket",
  );
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
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "pass its CA's certificate with --ca-file"],
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

test.each([
  [{ code: "ECONNREFUSED" }, "nothing listens at localhost:3000; start the local server"],
  [{ name: "HTTPParserError", code: "HPE_INVALID_CONSTANT" }, "does not answer in HTTP/1.1"],
  [{ code: "UND_ERR_SOCKET" }, "the local server closed the connection before its response"],
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "accept it with --insecure-upstream"],
  [{ code: "ERR_SSL_WRONG_VERSION_NUMBER" }, "localhost:3000 does not speak TLS; use http://"],
  [{ code: "UND_ERR_HEADERS_TIMEOUT" }, "the local server did not answer in time"],
])("of the local server, %o", (fields, expected) => {
  const error = Object.assign(new Error("a library's text"), fields);
  expect(describeOriginError(error, { origin: "localhost:3000" })).toContain(expected);
  const ofSeveralAddresses = new AggregateError([error]);
  expect(describeOriginError(ofSeveralAddresses, { origin: "localhost:3000" })).toContain(expected);
});

test("an error that has no sentence of its own is reported as unexpected, with its code", () => {
  const error = Object.assign(new Error("bad thing"), { code: "ERR_BAD_THING" });
  expect(getErrorMessage(error)).toBe("an unexpected error occurred: bad thing (ERR_BAD_THING)");
  expect(getErrorMessage(new TypeError("x is not a function"))).toContain("unexpected error");
  expect(getErrorMessage(new Error("the agent's own sentence"))).toBe("the agent's own sentence");
});

test("each reason that ends a tunnel's agent says what to do next", () => {
  const reasons = Object.entries(CLOSE).filter(([, code]) => !shouldReconnect(code));
  const withoutAdvice = reasons.filter(
    ([reason]) => !formatRejection({ reason, message: "it was rejected" }).includes("\n"),
  );
  // The advice about a token depends on where the agent has it from. Only private networks are deleted, and `underpass vpn` has
  // advice of its own.
  expect(withoutAdvice.map(([reason]) => reason)).toEqual(["unauthorized", "network_deleted"]);
});

test.each([
  [
    "duplicate_name",
    "admin is reserved for the service",
    "Choose another name with --subdomain or --url.",
  ],
  ["duplicate_name", "an agent with another token serves shop", "or stop the other agent."],
  [
    "duplicate_name",
    "a pool of agents serves this tunnel; start this agent with --pool too",
    "or stop the other agents.",
  ],
  [
    "invalid_request",
    "port 80 is not in the port range of the relay: 40001 to 40100",
    "Choose another port with --remote-port",
  ],
  ["domain_not_found", "shop.example is not claimed", "Add the domain in the dashboard"],
  ["duplicate_name", "port 40001 is taken", "Choose another port with --remote-port"],
  ["duplicate_name", "port 40001 is taken by db", "To serve that tunnel again, name it"],
  ["invalid_request", "db is a TCP tunnel, not an HTTP tunnel", "Choose another name"],
  ["invalid_request", "the tunnel is an HTTP tunnel, not a TCP tunnel", "Open its URL"],
  ["quota_exceeded", "the token's tunnel quota is used up", "Stop another tunnel of this token"],
  ["quota_exceeded", "16 agents serve this tunnel already", "Stop another agent of the pool"],
  [
    "quota_exceeded",
    "An organization can have at most 2000 tunnels at a time.",
    "underpass tunnels delete NAME",
  ],
  [
    "quota_exceeded",
    "An organization can make at most 10000 changes of the kind tunnel_created in 24 hours.",
    "Run the command again later",
  ],
  [
    "quota_exceeded",
    "the organization already has its share of the relay's ports",
    "Use a TCP tunnel that has a port already",
  ],
  ["forbidden", "the project does not exist", "Correct --project"],
  ["forbidden", "the token allows only ci-*", "Choose such a name with --subdomain"],
])("the advice about %s fits: %s", (reason, message, advice) => {
  const [, second] = formatRejection({ reason, message }).split("\n");
  expect(second).toContain(advice);
  expect(second!.includes("stop the other agent")).toBe(advice.includes("stop the other agent"));
});
