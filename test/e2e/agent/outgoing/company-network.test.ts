/**
 * The agent in a company's network: an HTTP proxy with a password is the only way out, and certificates are of the company's
 * own CA. The TLS front of the server and that of its relay have such certificates.
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { runCommandLine } from "../../../../agent/cli/run-command-line.ts";
import { COMMANDS } from "../../../../agent/commands/table/table.ts";
import type { Command } from "../../../../agent/commands/command.ts";
import { UsageError } from "../../../../agent/options.ts";
import { expose } from "../../../../agent/expose.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { createCertificate } from "../../../harness/fakes/certificate.ts";
import { startConnectProxy, type ConnectProxy } from "../../../harness/fakes/connect-proxy.ts";
import { startMiddlebox } from "../../../harness/fakes/middlebox.ts";
import { reservePorts } from "../../../harness/ports.ts";
import {
  openSocket,
  startEcho,
  startTcpStack,
  type TcpStack,
} from "../../../harness/relay/tcp/stack.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { runAgent, runToEnd } from "../../../harness/tunnel/agent.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../../harness/tunnel/origin.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";

const RELAY_PORTS = 4;

let stack: TcpStack;
let origin: RawOrigin;
let directory: string;
let caFile: string;
/** The TLS fronts: `https://localhost:port`. */
let server: Awaited<ReturnType<typeof startMiddlebox>>;
let relay: Awaited<ReturnType<typeof startMiddlebox>>;
let proxy: ConnectProxy;

beforeAll(async () => {
  directory = await createTemporaryDir();
  caFile = join(directory, "ca.pem");
  const authority = createCertificate({ commonName: "Example Corp CA" });
  await writeFile(caFile, `# the CA of Example Corp\r\n${authority.cert.replaceAll("\n", "\r\n")}`);
  const certificate = createCertificate({ issuer: authority });
  const relayPort = await reservePorts(RELAY_PORTS + 1);
  relay = await startMiddlebox(relayPort, { certificate });
  [stack, origin] = await Promise.all([
    startTcpStack({
      address: "127.0.0.1",
      port: relayPort,
      ports: RELAY_PORTS,
      env: { RELAY_URL: relay.url.replace("https", "wss") },
    }),
    startRawOrigin(() => OK),
  ]);
  server = await startMiddlebox(stack.api.server.port, { certificate });
});
afterAll(async () => {
  await origin.stop();
  for (const each of [server, relay, stack]) await each[Symbol.asyncDispose]();
});
beforeEach(async () => {
  proxy = await startConnectProxy({ credentials: "ada:p@ss" });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await proxy[Symbol.asyncDispose]();
});

const toError = (error: unknown): unknown => error;
const getHost = ({ url }: { url: string }): string => new URL(url).host;
const visit = async (name: string) =>
  (await exchange(stack.api.server.port, `GET / HTTP/1.1\r\nHost: ${name}.localhost\r\n\r\n`))
    .status;
/** The arguments of a command that uses the server. */
const use = (...args: string[]) => [...args, ...["--server", server.url, "--token-file", "TOKEN"]];
const share = (name: string) => use("http", String(origin.port), "--subdomain", name, "--json");

describe("a visitor gets the answer, and the proxy carries every connection of", () => {
  test.each(["HTTPS_PROXY", "all_proxy"])("http, with %s", async (variable) => {
    const name = `company-${variable.toLowerCase().replace("_", "-")}`;
    await using agent = await runAgent([...share(name), "--ca-file", caFile], {
      token: stack.token,
      env: { [variable]: `http://ada:p%40ss@127.0.0.1:${proxy.port}` },
    });
    await agent.event("ready");
    expect(await visit(name)).toBe(200);
    expect(new Set(proxy.targets)).toEqual(new Set([getHost(server)]));
    expect(agent.stdout + agent.stderr).not.toMatch(/p%40ss|p@ss/);
  });

  test("tcp: the API, the relay and its data connections", async () => {
    await using echo = await startEcho();
    const args = use("tcp", String(echo.port), "--json", "--ca-file", caFile);
    await using agent = await runAgent(args, {
      token: stack.token,
      env: { HTTPS_PROXY: `http://ada:p%40ss@127.0.0.1:${proxy.port}` },
    });
    const { publicPort } = (await agent.event("ready")) as { publicPort: number };
    const visitor = await openSocket(publicPort);
    visitor.write("hello");
    expect(String((await once(visitor, "data"))[0])).toBe("hello");
    visitor.destroy();
    expect(new Set(proxy.targets)).toEqual(new Set([getHost(server), getHost(relay)]));
  });
});

describe("without the proxy, the CA of", () => {
  test("NODE_EXTRA_CA_CERTS is trusted for a tunnel", async () => {
    await using agent = await runAgent(share("company-extra"), {
      token: stack.token,
      env: { NODE_EXTRA_CA_CERTS: caFile },
    });
    await agent.event("ready");
    expect(await visit("company-extra")).toBe(200);
  });

  test("ca_file in underpass.yml is trusted, relative to the file", async () => {
    const file = join(directory, "underpass.yml");
    const tunnel = `  web: {local: ${origin.port}, subdomain: company-file}`;
    const lines = ["version: 1", `server: ${server.url}`, "ca_file: ca.pem", "tunnels:", tunnel];
    await writeFile(file, lines.join("\n"));
    const args = ["start", "--config", file, "--token-file", "TOKEN", "--json"];
    await using agent = await runAgent(args, { token: stack.token });
    await agent.event("ready");
    expect(await visit("company-file")).toBe(200);
  });

  test("caFile is trusted for the tunnel of expose() alone", async () => {
    const options = { port: origin.port, server: server.url, token: stack.token };
    await using tunnel = await expose({ ...options, subdomain: "company-library", caFile });
    expect(tunnel.url).toContain("company-library");
    expect(await visit("company-library")).toBe(200);
    const missing = join(directory, "missing.pem");
    await expect(expose({ ...options, caFile: missing })).rejects.toThrow(
      new TypeError(`expose(): can't read the CA file: ${missing} does not exist; check the path`),
    );
  });

  test("--ca-file is trusted by every command that calls the API, and asked for when it is missing", async () => {
    const { token } = stack;
    const run = (...args: string[]) =>
      runToEnd(use(...args), { token, env: { UNDERPASS_CA_FILE: caFile } });
    const [tunnels, logs, webhooks, devices, connect, doctor] = await Promise.all([
      run("tunnels", "--json"),
      run("logs", "--since", "all", "--json"),
      run("webhooks", "absent", "--forward", "1"),
      run("vpn", "absent", "devices"),
      run("connect", "absent", "--listen", "127.0.0.1:0"),
      run("doctor"),
    ]);
    expect([tunnels.code, logs.code]).toEqual([0, 0]);
    expect(webhooks.stdout + webhooks.stderr).toContain("there is no receiver called absent");
    expect(devices.stderr).toContain("there is no private network called absent");
    expect(connect.stdout + connect.stderr).toContain("there is no tunnel");
    expect(doctor.stdout).toContain("trusted through --ca-file");
    const untrusted = await runToEnd(use("tunnels"), { token });
    expect([untrusted.code, untrusted.stderr]).toEqual([
      1,
      `underpass: ${server.url} can't be reached: the server's certificate is not trusted; pass its CA's certificate with --ca-file FILE\n`,
    ]);
  });

  test("--ca-file is trusted for the live view of logs, and for a login", async () => {
    const { token } = stack;
    const args = ["--ca-file", caFile];
    await using logs = await runAgent([...use("logs", "--json"), ...args], { token });
    await logs.event("ready");
    await using login = await runAgent(["login", "--server", server.url, ...args]);
    await expect.poll(() => login.stdout, WAIT_OPTIONS).toContain("should show the code");
  });
});

test.each([
  ["does not exist", "none.pem", null, "none.pem does not exist; check the path"],
  ["is not in PEM format", "ca.der", "\u0030\u0082", "has no certificate in PEM format; convert"],
  [
    "is damaged",
    "cut.pem",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "has a damaged certificate; get the file again",
  ],
])(
  "a CA file that %s ends every command with 2 and a sentence",
  async (_, name, text, expected) => {
    const file = join(directory, name);
    if (text !== null) await writeFile(file, text);
    for (const args of [use("tunnels"), use("doctor"), ["login"], share("company-damaged")]) {
      const failed = await runCommandLine([...args, "--ca-file", file]).catch(toError);
      expect(failed).toBeInstanceOf(UsageError);
      expect(String(failed)).toContain(expected);
    }
  },
);

test("a CA file that is a directory ends the command with 2 and a sentence", async () => {
  const { code, stderr } = await runToEnd([...use("tunnels"), "--ca-file", directory]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(
      `underpass: can't read the CA file: ${directory} is a directory; name a file\n`,
    ),
  ]);
});

test("a proxy of another kind ends commands and tunnels with a sentence", async () => {
  const env = { HTTPS_PROXY: "socks5://ada:p%40ss@127.0.0.1:1080" };
  for (const args of [use("tunnels"), share("company-socks")]) {
    const { code, stdout, stderr } = await runToEnd(args, { token: stack.token, env });
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "underpass: HTTPS_PROXY names a proxy of the kind socks5, which the agent does not support; set it to the URL of an HTTP proxy, or add localhost to NO_PROXY\n",
    });
  }
});

test("a tunnel says which password of the proxy is missing, and goes on trying", async () => {
  const env = { HTTPS_PROXY: `http://127.0.0.1:${proxy.port}` };
  await using agent = await runAgent(share("company-refused"), { token: stack.token, env });
  const { reason } = await agent.event("retrying");
  expect(reason).toBe(
    `the proxy http://127.0.0.1:${proxy.port} (HTTPS_PROXY) requires a user name and a password (407); add them to HTTPS_PROXY: http://USER:PASSWORD@127.0.0.1:${proxy.port}`,
  );
});

test("every command with --server has --ca-file, except those that connect to nothing", () => {
  const collect = (command: Command): Command[] => [
    command,
    ...(command.subcommands ?? []).flatMap(collect),
  ];
  const without = COMMANDS.flatMap(collect).filter(
    ({ options }) => "server" in options && !("ca-file" in options),
  );
  expect(without.map(({ name }) => name)).toEqual(["logout", "open"]);
});
