/** A tunnel of the library from its options to its end: mistakes, listeners that throw, and closing it more than once. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expose, type ExposeOptions, type RequestReport } from "../../../../agent/expose.ts";
import { ROOT } from "../../../../self-host/build/build.ts";
import { mintToken } from "../../../harness/server/api.ts";
import { NODE_ENVIRONMENT } from "../../../harness/node-environment.ts";
import { startStack, type Stack } from "../../../harness/server/stack.ts";

let stack: Stack;
let local: Server;
/** Called with each response of the local server, which the test ends. */
let respond: (response: ServerResponse) => void = (response) => void response.end("ok");

beforeAll(async () => {
  stack = await startStack();
  local = createServer((_, response) => respond(response)).listen(0, "127.0.0.1");
  await once(local, "listening");
});
afterAll(async () => {
  await stack.stop();
  local.closeAllConnections();
  local.close();
});

const getPort = () => (local.address() as AddressInfo).port;

describe("expose() rejects with a TypeError that names the mistake:", () => {
  test.each<[object | undefined, string]>([
    [undefined, "expose() needs exactly one of port, origin and fetch"],
    [{}, "expose() needs exactly one of port, origin and fetch"],
    [{ port: 3000, basicauth: "a:b" }, "no option basicauth; did you mean basicAuth?"],
    [{ port: "3000" }, "expose(): port must be a number"],
    [{ port: 70_000 }, "expose(): port must be at most 65535"],
    [{ origin: "" }, "expose(): origin must not be empty"],
    [{ fetch: "x" }, "expose(): fetch must be a function"],
    [{ port: 1, token: "!" }, "expose(): token must be the token's bytes, or those in base64"],
    [{ port: 1, token: "AA==", tokenFile: "a" }, "token or tokenFile, not both"],
    [{ port: 1, subdomain: "a", url: "https://a.test" }, "subdomain or url, not both"],
    [{ port: 1, subdomain: "" }, "expose(): subdomain must have 1 to 63 lower-case letters"],
    [{ port: 1, project: "A" }, "expose(): project must have 1 to 63 lower-case letters"],
    [{ port: 1, ttlSeconds: 0 }, "expose(): ttlSeconds must be at least 1"],
    [{ port: 1, headers: { a: 1 } }, "expose(): headers.a must be a string"],
    [{ port: 1, headers: { Host: "a" } }, "headers can't set Host; use hostHeader"],
    [{ port: 1, directoryListing: true }, "directoryListing needs a directory"],
    [{ port: 1, basicAuth: "secret-password" }, "basicAuth must be a user name and a password"],
    [{ port: 1, policy: { actions: [{ type: "x" }] } }, "expose(): policy.actions[0]"],
    [{ port: 1, signal: "x" }, "expose(): signal must be an AbortSignal"],
  ])("%j", async (options, message) => {
    const error = await expose(options as ExposeOptions).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(message);
    expect((error as Error).message).not.toContain("secret-password");
  });
});

test("close() called twice waits for the requests in flight", async () => {
  const tunnel = await stack.expose({ port: getPort(), subdomain: "closed-twice" });
  const arrived = new Promise<ServerResponse>((resolve) => (respond = resolve));
  const visit = stack.visit("closed-twice");
  const response = await arrived;
  const closings = [tunnel.close(), tunnel.close()];
  await new Promise((resolve) => setImmediate(resolve));
  response.end("complete");
  expect((await visit).body.toString()).toBe("complete");
  await Promise.all(closings);
  await tunnel.close();
});

test("a response that ends early keeps the status that its visitor got, with what went wrong", async () => {
  const { events } = await stack.expose({ port: getPort(), subdomain: "ends-early" });
  const reported = once(events, "request") as Promise<[RequestReport]>;
  respond = (response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("the beginning", () => response.destroy());
  };
  await expect(stack.visit("ends-early")).rejects.toThrow("ended early");
  const [{ status, problem }] = await reported;
  expect([status, problem]).toEqual([200, expect.stringContaining("closed the connection")]);
});

describe("in a program of its own,", () => {
  /** Runs a module that ends by itself. */
  async function runProgram(source: string, env: Record<string, string>): Promise<string> {
    const library = JSON.stringify(pathToFileURL(join(ROOT, "agent/dist/expose.js")).href);
    const program = `import { expose } from ${library};\n${source}`;
    const args = ["--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      env: { ...NODE_ENVIRONMENT, ...env },
    });
    return stdout;
  }

  test("an exception in a listener is an uncaught one, and the visitor gets the response", async () => {
    respond = (response) => void response.end("ok");
    const { wireBytes } = await mintToken(stack.owner);
    const program = `
      const { SERVER: server, TOKEN: token, PORT } = process.env;
      process.on("uncaughtException", ({ message }) => console.log("uncaught", message));
      const tunnel = await expose({ port: Number(PORT), server, token, subdomain: "throwing" });
      let count = 0;
      tunnel.events.on("request", ({ status }) => {
        console.log(status);
        count += 1;
        if (count === 2) void tunnel.close();
        throw new Error("of the listener");
      });
      tunnel.events.on("closed", () => console.log("closed"));
      const visit = () => new Promise((resolve) => {
        const headers = { host: new URL(tunnel.url).host };
        get(server, { headers, agent: false }, async (response) => {
          for await (const chunk of response) console.log(String(chunk));
          resolve();
        });
      });
      await visit();
      await visit();`;
    const printed = await runProgram(`import { get } from "node:http";${program}`, {
      SERVER: stack.server.url,
      TOKEN: wireBytes,
      PORT: String(getPort()),
    });
    const lines = printed.trim().split("\n").sort();
    const uncaught = "uncaught of the listener";
    expect(lines).toEqual(["200", "200", "closed", "ok", "ok", uncaught, uncaught]);
  });

  test("a server that can't be reached causes one warning, until the signal aborts the call", async () => {
    const closed = createTcpServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const address = `127.0.0.1:${(closed.address() as AddressInfo).port}`;
    closed.close();
    const program = `
      const { SERVER: server } = process.env;
      const stop = new AbortController();
      process.once("warning", ({ name, message }) => {
        console.log(name, message);
        stop.abort(new Error("stopped"));
      });
      const pending = expose({ port: 1, server, token: "AAAA", signal: stop.signal });
      console.log(await pending.catch((error) => error.message));`;
    expect(await runProgram(program, { SERVER: `http://${address}` })).toBe(
      `UnderpassWarning expose() is still connecting to http://${address}: ${address} refuses connections; ` +
        "check the address, and that the server runs\nstopped\n",
    );
  });

  test("nothing is left after a rejection, nor after an abort while the agent connects", async () => {
    const silent = createTcpServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const program = `
      const { SERVER: server, SILENT, TOKEN: token } = process.env;
      const rejection = await expose({ port: 1, server, token }).catch((error) => error);
      console.log(rejection.name, rejection.reason);
      const stop = new AbortController();
      const pending = expose({ port: 1, server: SILENT, token, signal: stop.signal });
      setImmediate(() => stop.abort(new Error("stopped")));
      console.log(await pending.catch((error) => error.message));`;
    const printed = await runProgram(program, {
      SERVER: stack.server.url,
      SILENT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
      TOKEN: "AAAA",
    });
    expect(printed).toBe("Rejected unauthorized\nstopped\n");
    silent.close();
  });
});
