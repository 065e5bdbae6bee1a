/** The npm package `underpass` that every server serves, as `npm install` leaves it in an empty directory. */
import { execFile } from "node:child_process";
import { lstat, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SERVICE_VERSION } from "../../../../protocol/version.ts";
import { buildAgent } from "../../../../self-host/build/agent-package.ts";
import { ROOT } from "../../../../self-host/build/build.ts";
import {
  openSocket,
  startEcho,
  startTcpStack,
  type TcpStack,
} from "../../../harness/relay/tcp/stack.ts";
import { readAll } from "../../../harness/relay/tcp/tunnel-port.ts";
import { getUserPath } from "../../../harness/terminal.ts";
import { runAgent, type RunningAgent } from "../../../harness/tunnel/agent.ts";
import {
  installAgent,
  packAgent,
  type InstalledAgent,
} from "../../../harness/agent/installed-agent.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../../harness/tunnel/origin.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";

const run = promisify(execFile);
const MIB = 2 ** 20;
const INSTALLED_MAX_BYTES = 8 * MIB;
const DEPENDENCIES_MAX = 15;
/** Sources of the server. */
const SERVER_SOURCE = /^(?:workers|durable-objects|access|relay|self-host|dashboard|migrations)\//;

let stack: TcpStack;
let origin: RawOrigin;
let agent: InstalledAgent;
/** Runs the installed command with the Node.js of the user. */
let installed: { token: Buffer; command: string[]; env: { PATH: string } };

beforeAll(async () => {
  [stack, origin] = await Promise.all([
    startTcpStack({ address: "127.0.0.1", ports: 10 }),
    startRawOrigin(() => OK),
  ]);
  agent = await installAgent(stack.api.server.url);
  const command = [join(agent.project, "node_modules/.bin/underpass")];
  installed = { token: stack.token, command, env: { PATH: getUserPath() } };
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  await stack[Symbol.asyncDispose]();
  await origin.stop();
});

async function listInstalledFiles(): Promise<string[]> {
  const modules = join(agent.project, "node_modules");
  const entries = await readdir(modules, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name !== ".package-lock.json")
    .map(({ parentPath, name }) => join(parentPath, name));
}

const visit = (subdomain: string) =>
  exchange(stack.api.server.port, `GET / HTTP/1.1\r\nHost: ${subdomain}.localhost\r\n\r\n`);

test("the versions of the packages, of the lock file and of the service are equal", async () => {
  const read = async (path: string): Promise<unknown> =>
    JSON.parse(await readFile(join(ROOT, path), "utf8"));
  for (const path of ["package.json", "agent/package.json", "dashboard/package.json"]) {
    const { version } = (await read(path)) as { version: string };
    expect([path, version]).toEqual([path, SERVICE_VERSION]);
  }
  const { packages } = (await read("package-lock.json")) as {
    packages: Record<string, { version?: string }>;
  };
  for (const path of ["", "agent", "dashboard"]) {
    expect([path, packages[path]?.version]).toEqual([path, SERVICE_VERSION]);
  }
});

test("takes up at most 8 MB with at most 15 dependencies", async () => {
  const files = await listInstalledFiles();
  const sizes = await Promise.all(files.map(async (path) => (await lstat(path)).size));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  expect(bytes).toBeLessThanOrEqual(INSTALLED_MAX_BYTES);
  const packages = (await readdir(join(agent.project, "node_modules"))).filter(
    (name) => !name.startsWith("."),
  );
  expect(packages).toContain("underpass");
  expect(packages.length - 1).toBeLessThanOrEqual(DEPENDENCIES_MAX);
});

test("has the same files as the package that `npm pack` makes for a registry", async () => {
  const root = join(agent.project, "node_modules/underpass");
  await using packed = await packAgent();
  const files = (await listInstalledFiles()).map((path) => relative(root, path)).sort();
  expect(packed.files).toEqual(files);
  for (const path of files) {
    const [installed, published] = [root, packed.dir].map((dir) => readFile(join(dir, path)));
    expect([path, (await installed!).equals(await published!)]).toEqual([path, true]);
  }
});

test("contains no code of the server, and the licenses of the code of others", async () => {
  const sources = Object.keys((await buildAgent()).inputs);
  expect(sources).toContain("agent/expose.ts");
  expect(sources.filter((path) => SERVER_SOURCE.test(path))).toEqual([]);
  const files = await listInstalledFiles();
  const root = join(agent.project, "node_modules/underpass");
  const places = new Set(files.map((path) => relative(root, path).split(sep)[0]));
  expect([...places].sort()).toEqual([
    ...["LICENSE", "README.md", "bin", "dist", "package.json", "underpass.schema.json"],
  ]);
  const licenses = files.find((path) => path.endsWith("licenses.txt")) ?? "";
  expect(await readFile(licenses, "utf8")).toMatch(/^undici \(MIT\)$[^]*^ws \(MIT\)$/m);
});

test("the lines of the bundle are short, because Node.js prints the whole line of an uncaught error", async () => {
  const scripts = (await listInstalledFiles()).filter((path) => path.endsWith(".js"));
  const texts = await Promise.all(scripts.map((path) => readFile(path, "utf8")));
  const lengths = texts.flatMap((text) => text.split("\n").map((line) => line.length));
  expect(Math.max(0, ...lengths)).toBeLessThan(1_000);
});

describe("with the Node.js of the user,", () => {
  /** Connections that follow one another, each of which sends bytes and receives them again. */
  async function echoOften(visit: () => Promise<Socket>): Promise<void> {
    for (const payload of ["first", "second", "x".repeat(MIB), "last"]) {
      const socket = await visit();
      socket.end(payload);
      expect((await readAll(socket)).equals(Buffer.from(payload))).toBe(true);
    }
  }

  async function stop(running: RunningAgent): Promise<void> {
    running.child.kill("SIGINT");
    expect([await running.exit, running.stderr]).toEqual([0, ""]);
  }

  test("the installed command serves a visitor", async () => {
    const { url } = stack.api.server;
    const args = ["http", String(origin.port), "--server", url, "--token-file", "TOKEN", "--json"];
    await using running = await runAgent([...args, "--subdomain", "installed"], installed);
    await running.event("ready");
    expect((await visit("installed")).status).toBe(200);
    await stop(running);
  });

  test("`tcp` and `connect` serve several connections, and run on", async () => {
    await using echo = await startEcho();
    await using tunnel = await stack.serve(echo.port, [], installed);
    await echoOften(() => tunnel.visit());
    await using local = await stack.connect(tunnel.tunnelId, undefined, installed);
    await echoOften(() => local.visit());
    await stop(local);
    await stop(tunnel);
  });

  test("`start` serves an HTTP and a TCP tunnel, and runs on", async () => {
    await using echo = await startEcho();
    const path = join(agent.project, "underpass.yml");
    const tunnels = [
      `  web: {local: ${origin.port}, subdomain: installed-web}`,
      `  db: {local: ${echo.port}, protocol: tcp}`,
    ];
    const { url } = stack.api.server;
    await writeFile(path, ["version: 1", `server: ${url}`, "tunnels:", ...tunnels].join("\n"));
    const args = ["start", "--all", "--config", path, "--token-file", "TOKEN", "--json"];
    await using running = await runAgent(args, installed);
    await running.event("ready", "web");
    const { publicPort } = await running.event("ready", "db");
    await echoOften(() => openSocket(Number(publicPort)));
    expect((await visit("installed-web")).status).toBe(200);
    await stop(running);
  });

  test.each([
    ["a port", "{ port: Number(port) }", "ok"],
    ["a function", '{ fetch: (request) => new Response(request.body ?? "handled") }', "handled"],
  ])("a program imports the installed library, and shares %s", async (kind, target, body) => {
    const program = `
      import { expose, Rejected } from "underpass";
      const [, , port, server, subdomain] = process.argv;
      const token = Buffer.from(process.env.TOKEN, "base64");
      const target = ${target};
      const tunnel = await expose({ ...target, server, token, subdomain });
      console.log(tunnel.url);
      await new Promise((resolve) => tunnel.events.once("request", resolve));
      await tunnel.close();
      const refused = await expose({ ...target, server, token: new Uint8Array(3) }).catch((error) => error);
      console.log(refused instanceof Rejected, refused.constructor.name);
      const unusable = await expose({ ...target, server: "ftp://a" }).catch((error) => error);
      console.log(unusable.name, unusable.constructor.name);
      process.exit();`;
    await writeFile(join(agent.project, "program.js"), program);
    const name = kind.replace(" ", "-");
    const args = ["program.js", String(origin.port), stack.api.server.url, name];
    const running = run("node", args, {
      cwd: agent.project,
      env: { ...installed.env, TOKEN: stack.token.toString("base64") },
    });
    const lines = running.child.stdout!.setEncoding("utf8");
    await new Promise((resolve) => lines.once("data", resolve));
    const answer = await visit(name);
    expect([answer.status, answer.body.toString()]).toEqual([200, body]);
    const { stdout } = await running;
    expect(stdout).toMatch(
      new RegExp(`^http://${name}\\.localhost:\\d+\ntrue Rejected\nSettingsError SettingsError\n$`),
    );
  });
});

describe("a strict TypeScript project with nothing but the package and @types/node compiles", () => {
  const PROGRAM = `
    import { expose, Rejected, type ExposedTunnel, type ExposeOptions } from "underpass";
    const options: ExposeOptions = { port: 3000, subdomain: "shop", ttlSeconds: 60 };
    try {
      const tunnel: ExposedTunnel = await expose(options);
      tunnel.events.on("request", (request) => console.log(request.path.length, request.status + 1));
      tunnel.events.once("disconnected", (reason) => console.log(reason.length));
      // @ts-expect-error: there is no such event
      tunnel.events.on("visitor", () => undefined);
      console.log(new URL(tunnel.url), tunnel.tunnelId.length);
      await tunnel.close();
    } catch (error) {
      if (error instanceof Rejected) console.log(error.reason.length, error.message);
    }
    // @ts-expect-error: a port is a number
    await expose({ port: "3000" });
    export {};`;

  /** With the examples of docs/library.md. */
  const files: string[] = [];

  beforeAll(async () => {
    const page = await readFile(join(ROOT, "docs/library.md"), "utf8");
    const examples = [...page.matchAll(/^```ts\n(.*?)^```/gms)].map(([, example]) => example!);
    for (const [index, program] of [PROGRAM, ...examples].entries()) {
      files[index] = `program${index}.ts`;
      await writeFile(join(agent.project, files[index]), program);
    }
    for (const name of ["@types", "undici-types"]) {
      await symlink(join(ROOT, "node_modules", name), join(agent.project, "node_modules", name));
    }
  });

  test.each([
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ])("module %s with moduleResolution %s", async (module, moduleResolution) => {
    const compilerOptions = {
      ...{ module, moduleResolution, target: "es2022", strict: true, noEmit: true },
      ...{ skipLibCheck: false, types: ["node"] },
    };
    const settings = join(agent.project, `${moduleResolution}.json`);
    await writeFile(settings, JSON.stringify({ compilerOptions, files }));
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const compiled = run(process.execPath, [compiler, "--checkers", "1", "-p", settings]).catch(
      ({ stdout }: { stdout: string }) => ({ stdout }),
    );
    expect((await compiled).stdout).toBe("");
  });
});
