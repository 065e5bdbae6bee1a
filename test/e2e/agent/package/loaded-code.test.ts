/** How much code the agent loads. Its start time and its memory follow from that. */
import { beforeAll, expect, test } from "vitest";
import type { Metafile } from "esbuild";
import { buildAgent } from "../../../../self-host/build/agent-package.ts";
import { findEagerCode } from "../../../../self-host/build/build.ts";
import { mintToken, startApi } from "../../../harness/server/api.ts";
import { runAgent, runToEnd } from "../../../harness/tunnel/agent.ts";

const KIB = 1024;
const VERSION_MAX_BYTES = 4 * KIB;
const HELP_MAX_BYTES = 100 * KIB;
const HTTP_MAX_BYTES = 800 * KIB;

/** Makes Node.js print which of its modules it has loaded. */
const LIST_AT_EXIT = `--import=data:text/javascript,${encodeURIComponent(
  'process.on("exit", () => console.error(process.moduleLoadList.join("\\n")))',
)}`;
const listLoaded = (stderr: string): string[] =>
  stderr.split("\n").map((line) => line.replace("NativeModule ", ""));

let bundle: Metafile;
beforeAll(async () => {
  bundle = await buildAgent();
});

test("`version` loads no library and nothing of the other commands", () => {
  const { sources, bytes } = findEagerCode(bundle, "agent/bin/underpass.ts");
  expect(sources).toEqual(["agent/bin/underpass.ts", "agent/version.ts", "protocol/version.ts"]);
  expect(bytes).toBeLessThan(VERSION_MAX_BYTES);
});

test("help and completion load no library for schemas, YAML or connections, and each command is loaded by itself", () => {
  const { sources, bytes } = findEagerCode(bundle, "agent/cli/main.ts");
  const unused =
    /node_modules\/(?!ipaddr\.js\/)|protocol\/schemas\/|agent\/commands\/(?!command\.ts|table\/)/;
  expect(sources.filter((source) => unused.test(source))).toEqual([]);
  expect(bytes).toBeLessThan(HELP_MAX_BYTES);
});

test("a command of the API loads neither WebSockets, nor YAML, nor the protocols of connections", () => {
  const { sources } = findEagerCode(bundle, "agent/commands/management/tunnels.ts");
  const unused = /node_modules\/(?:ws|yaml)\/|protocol\/(?:wire\/frames|relay\/)/;
  expect(sources.filter((source) => unused.test(source))).toEqual([]);
});

test("`http` loads neither YAML, nor the server of files, nor more of undici than it uses", () => {
  const { sources, bytes } = findEagerCode(bundle, "agent/commands/http.ts");
  const unused =
    /node_modules\/(?:yaml|send|mime-db)\/|undici\/lib\/(?:cache|mock|interceptor|web\/websocket)\//;
  expect(sources.filter((source) => unused.test(source))).toEqual([]);
  expect(sources).toContain("node_modules/undici/lib/dispatcher/pool.js");
  expect(bytes).toBeLessThan(HTTP_MAX_BYTES);
});

test("a command of the API makes its call without `fetch`, and a plain table without the data of `Intl.Segmenter`", async () => {
  await using api = await startApi();
  const { wireBytes } = await mintToken(await api.owner());
  const { code, stderr } = await runToEnd(
    ["tunnels", "list", "--server", api.server.url, "--token-file", "TOKEN"],
    {
      token: Buffer.from(wireBytes, "base64"),
      env: { NODE_OPTIONS: `${LIST_AT_EXIT} --import=data:text/javascript,delete(Intl.Segmenter)` },
    },
  );
  expect(code).toBe(0);
  const loaded = listLoaded(stderr);
  expect(loaded).toContain("http");
  // The code of `fetch` loads it.
  expect(loaded).not.toContain("zlib");
});

test("an idle agent has loaded neither the undici of Node.js nor HTTP/2", async () => {
  await using api = await startApi();
  const token = Buffer.from((await mintToken(await api.owner())).wireBytes, "base64");
  const args = ["http", "1", "--server", api.server.url, "--token-file", "TOKEN", "--json"];
  await using agent = await runAgent(args, {
    token,
    env: { NODE_OPTIONS: LIST_AT_EXIT },
  });
  await agent.event("ready");
  agent.child.kill("SIGINT");
  expect(await agent.exit).toBe(0);
  const loaded = listLoaded(agent.stderr);
  expect(loaded).toContain("http");
  expect(loaded).not.toContain("internal/deps/undici/undici");
  expect(loaded).not.toContain("http2");
});
