/** The checks of `underpass doctor` whose causes a test can't produce: resolvers, limits of the system, versions. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import packageJson from "../../../agent/package.json" with { type: "json" };
import { checkDns, type AddressLookup } from "../../../agent/doctor/dns-check.ts";
import { checkHttp, checkVersion, createFetch } from "../../../agent/doctor/http-check.ts";
import { checkNode, checkOpenFiles } from "../../../agent/doctor/machine-checks.ts";
import { checkRelays } from "../../../agent/doctor/relay-check.ts";
import { checkToken } from "../../../agent/doctor/token-check.ts";
import { checkWebSocket } from "../../../agent/doctor/websocket-check.ts";
import { RELAY_SUBPROTOCOL } from "../../../protocol/relay/datagrams.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { startHttpServer } from "../../harness/fakes/http-server.ts";

const route = {
  server: new URL("https://tunnels.example.com"),
  token: null,
  renewal: "",
  proxy: undefined,
  authorities: undefined,
};
const fail =
  (code: string): AddressLookup =>
  () =>
    Promise.reject(Object.assign(new Error(`getaddrinfo ${code}`), { code }));
const answer =
  (...addresses: string[]): AddressLookup =>
  () =>
    Promise.resolve(
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );

describe("DNS", () => {
  test.each<[string, AddressLookup, string, string]>([
    ["NXDOMAIN", fail("ENOTFOUND"), "problem", "does not exist (NXDOMAIN)"],
    ["a silent resolver", fail("EAI_AGAIN"), "problem", "the resolver does not answer"],
    ["a private address", answer("10.0.0.1"), "warning", "not a public address"],
    ["a blocked name", answer("0.0.0.0", "::"), "warning", "not a public address"],
    ["one family", answer("203.0.114.7"), "ok", "IPv4 only"],
    ["two families", answer("203.0.114.7", "2606:4700::1"), "ok", "203.0.114.7, 2606:4700::1"],
  ])("%s", async (_, lookUp, status, result) => {
    const outcome = await checkDns(route, lookUp);
    expect(outcome.status).toBe(status);
    expect(outcome.result).toContain(result);
  });

  test("a private address is right for a name of a private network", async () => {
    const server = new URL("https://tunnels.home.arpa");
    expect((await checkDns({ ...route, server }, answer("10.0.0.1"))).status).toBe("ok");
  });
});

test.each([403, 404])(
  "a proxy that answers %s instead of opening a WebSocket, and stalls in its body, is reported with what has arrived",
  async (status) => {
    await using proxy = await startHttpServer((_, response) => {
      response.writeHead(status, { "content-length": 1_000 }).write("Blocked by the proxy");
    });
    const time = new AbortController();
    const passTime = (): unknown => setImmediate(() => time.abort());
    subscribe("http.client.response.finish", passTime);
    try {
      const withToken = { ...route, server: new URL(proxy.origin), token: Buffer.from("token") };
      const { result } = await checkWebSocket(withToken, time.signal);
      expect(result).toContain(`answers ${status} instead of opening it: "Blocked by the proxy"`);
    } finally {
      unsubscribe("http.client.response.finish", passTime);
    }
  },
);

test("a server of another version, whose description of the token can't be read, is not asked again", async () => {
  await using server = await startHttpServer((_, response) => response.end('{"name":"laptop"}'));
  const withToken = { ...route, server: new URL(server.origin), token: Buffer.from("token") };
  const { signal } = new AbortController();
  expect(await checkToken(withToken, createFetch(undefined), signal)).toMatchObject({
    status: "problem",
    result: "the server has another version, whose answer this agent can't read",
    advice: expect.stringMatching(
      /^Upgrade the older of the two, or install the server's own agent: npm install /,
    ) as unknown,
  });
});

test("a relay that answers is fine, and one that does not is named", async () => {
  const stopped = await startHttpServer((_, response) => response.end());
  await stopped.stop();
  const relay = new WebSocketServer({ port: 0, handleProtocols: () => RELAY_SUBPROTOCOL });
  relay.on("connection", (socket) => socket.close(CLOSE.unauthorized));
  await once(relay, "listening");
  const { port } = relay.address() as AddressInfo;
  const relays = [{ id: "main", url: `ws://127.0.0.1:${port}` }];
  const { signal } = new AbortController();
  expect((await checkRelays(route, relays, signal)).status).toBe("ok");
  const dead = { id: "fra", url: `ws://127.0.0.1:${stopped.port}` };
  const outcome = await checkRelays(route, [...relays, dead], signal);
  expect(outcome.status).toBe("warning");
  expect(outcome.result).toContain(`from here: ${dead.url} can't be reached (`);
  expect((await checkRelays(route, [], signal)).status).toBe("skipped");
  relay.close();
});

test("the limit of open files is compared with what a busy tunnel needs", () => {
  expect(checkOpenFiles(256)).toMatchObject({ status: "warning" });
  expect(checkOpenFiles(256).advice).toContain("ulimit -n 4096");
  expect(checkOpenFiles(65_536).status).toBe("ok");
  expect(checkOpenFiles("unlimited").status).toBe("ok");
});

test("a Node.js that is older than package.json requires is a problem", () => {
  expect(packageJson.engines.node).toBe(">=20.18.1");
  const old = ["18.20.0", "20.9.0", "20.18.0"];
  expect(old.filter((version) => checkNode(version).status !== "problem")).toEqual([]);
  const supported = ["20.18.1", "20.19.0", "22.0.0", "100.0.0"];
  expect(supported.filter((version) => checkNode(version).status !== "ok")).toEqual([]);
});

test.each(["README.md", "agent/README.md", "docs/library.md", "docs/troubleshooting.md"])(
  "%s and the advice name the Node.js that package.json requires",
  async (path) => {
    const required = `Node.js ${packageJson.engines.node.replace(">=", "")} or newer`;
    expect(await readFile(join(ROOT, path), "utf8")).toContain(required);
    expect(checkNode("18.20.0").advice).toContain(required);
  },
);

test("a refused protocol version is a problem, and a patch release is no difference", () => {
  const api = { ...route, clockSkewMs: 0 };
  const [major = "", minor = ""] = SERVICE_VERSION.split(".");
  expect(checkVersion({ ...api, version: `${major}.${minor}.999` }, false).status).toBe("ok");
  expect(checkVersion({ ...api, version: "99.0.0" }, true)).toMatchObject({
    status: "problem",
    advice: `Update the agent: npm install --global ${route.server.origin}/underpass.tgz`,
  });
});

test("a redirect to an address that is not valid is another web server, and no error of the doctor", async () => {
  await using server = await startHttpServer((_, response) =>
    response.writeHead(302, { location: "http://[" }).end("Moved"),
  );
  const other = { ...route, server: new URL(server.origin) };
  const outcome = await checkHttp(other, createFetch(undefined), new AbortController().signal);
  expect(outcome).toMatchObject({
    status: "problem",
    result: expect.stringContaining('302 "Moved"'),
  });
});
