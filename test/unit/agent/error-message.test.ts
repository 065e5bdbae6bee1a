/** What the errors of Node.js become for the user. The errors are real, where this machine can cause them. */
import { readFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { fetch } from "undici";
import WebSocket from "ws";
import { z } from "zod";
import { explainError } from "../../../agent/error-message.ts";
import { DEFAULT_SERVER, UnreachableServerError } from "../../../agent/settings-error.ts";
import { describeOriginError } from "../../../agent/origin/origin-error.ts";
import { ServiceApi } from "../../../agent/service-api.ts";
import { formatRejection } from "../../../agent/output/output.ts";
import { CLOSE, shouldReconnect, type CloseName } from "../../../protocol/wire/close-codes.ts";
import { parseCloseReason } from "../../../protocol/wire/close-reason.ts";

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
    (error: unknown) => explainError(error),
  );

async function getSocketError(url: string): Promise<string> {
  const [error] = (await once(new WebSocket(url), "error").catch((thrown: unknown) => [
    thrown,
  ])) as [unknown];
  return explainError(error);
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

test.each([
  [DEFAULT_SERVER, "refused; for another server, run: underpass login --server URL"],
  ["https://underpass.example", "refused"],
])("a login at %s that can't be reached", (server, expected) => {
  const { message } = new UnreachableServerError(new URL(server), new Error("refused"));
  expect(message).toBe(expected);
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

test.each([
  [404, "the server answered 404 instead of a WebSocket; check the address"],
  [503, "the server is not available now: it may be restarting (HTTP 503)"],
])("a server that answers a WebSocket with the status %i", async (status, expected) => {
  const server = createHttpServer((_, response) => response.writeHead(status).end());
  server.on("upgrade", (_, socket) => socket.end(`HTTP/1.1 ${status} No\r\n\r\n`));
  const port = await listen(server);
  expect(await getSocketError(`ws://127.0.0.1:${port}`)).toContain(expected);
});

test.each([
  [404, "the server answered 404 instead of the API's JSON; check the address"],
  [502, "the server is not available now: it may be restarting (HTTP 502)"],
])(
  "another web server, or a proxy, that answers the API with the status %i",
  async (status, expected) => {
    const port = await listen(
      createHttpServer((_, response) => response.writeHead(status).end("<html>")),
    );
    const server = new URL(`http://127.0.0.1:${port}`);
    const api = new ServiceApi({ server, authorities: undefined }, "token");
    const { signal } = new AbortController();
    await expect(api.call(z.object({}), "GET", "/tunnels", { signal })).rejects.toThrow(expected);
  },
);

test("a server of another version, whose answer lacks what this agent needs, and another server with such an answer", async () => {
  const call = async (headers: Record<string, string>) => {
    const port = await listen(
      createHttpServer((_, response) => response.writeHead(200, headers).end('[{"id":"a"}]')),
    );
    const server = new URL(`http://127.0.0.1:${port}`);
    const api = new ServiceApi({ server, authorities: undefined }, "token");
    const { signal } = new AbortController();
    const rows = z.array(z.object({ id: z.string(), addedLater: z.number() }));
    return api.call(rows, "GET", "/tunnels", { signal }).catch((error: unknown) => error);
  };
  expect(await call({ "underpass-request-id": "1" })).toMatchObject({
    reason: "unsupported_version",
    message: expect.stringMatching(
      /^the server has another version.*npm install --global http:\S+\/underpass\.tgz$/,
    ) as unknown,
  });
  expect(await call({})).toMatchObject({
    name: "RetryableError",
    message: expect.stringContaining("is not an Underpass server") as unknown,
  });
});

test("a file that does not exist, and a directory", async () => {
  const getReadError = (path: string) =>
    readFile(path).catch((error: unknown) => explainError(error));
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
  expect(explainError(new Error("fetch failed", { cause: error }))).toContain(expected);
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
  expect(explainError(error)).toBe("an unexpected error occurred: bad thing (ERR_BAD_THING)");
  expect(explainError(new TypeError("x is not a function"))).toContain("unexpected error");
  expect(explainError(new Error("the agent's own sentence"))).toBe("the agent's own sentence");
});

test("each reason that ends a tunnel's agent says what to do next", () => {
  const reasons = Object.entries(CLOSE).filter(([, code]) => !shouldReconnect(code));
  const withoutAdvice = reasons.filter(
    ([reason]) => !formatRejection({ reason, message: "it was rejected" }).includes("\n"),
  );
  // The advice about a token depends on where the agent has it from. Only private networks are deleted, and `underpass vpn` has
  // advice of its own. The message about versions says which side is too old.
  expect(withoutAdvice.map(([reason]) => reason)).toEqual([
    "unauthorized",
    "network_deleted",
    "unsupported_version",
  ]);
});

/** What the user of `underpass http` or `tcp` reads below the sentence of this close reason. */
function getAdvice(reason: string): string | undefined {
  const [name] = reason.split(":") as [CloseName];
  const { message, subcode } = parseCloseReason(CLOSE[name], reason);
  return formatRejection({ reason: name, message, subcode }).split("\n")[1];
}

test.each([
  ["duplicate_name: api is taken [name_unavailable]", "Choose another name with --subdomain"],
  ["duplicate_name: an agent with another token serves shop", "or stop the other agent."],
  ["duplicate_name: port 40001 is taken [port_taken]", "Choose another port with --remote-port"],
  ["quota_exceeded: the token's tunnel quota is used up", "Stop another tunnel of this token"],
  ["quota_exceeded: 16 agents serve this tunnel [pool_full]", "Stop another agent of the pool"],
  ["forbidden: the project does not exist [project_not_found]", "Correct --project"],
  ["unsupported_version: the agent is too old [agent_too_old]", "Update the agent"],
])("the advice is that of the subcode, or else of the reason: %s", (reason, advice) => {
  expect(getAdvice(reason)).toContain(advice);
});

test("the sentence of a server does not decide the advice", () => {
  for (const sentence of ["port 40001 is taken", "16 agents serve this tunnel already"]) {
    expect(getAdvice(`duplicate_name: ${sentence}`)).toContain("or stop the other agent.");
  }
});

test("a subcode of a newer server is not shown, and gets the advice of its reason", () => {
  for (const subcode of ["not_known_yet", "constructor"]) {
    const reason = `forbidden: a new rule [${subcode}]`;
    expect(getAdvice(reason)).toBe(getAdvice("forbidden: a new rule"));
    expect(parseCloseReason(CLOSE.forbidden, reason).message).toBe("a new rule");
  }
});
