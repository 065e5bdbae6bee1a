/** How much code the agent loads. Its start time and its memory follow from that. */
import { beforeAll, expect, test } from "vitest";
import type { Metafile } from "esbuild";
import { buildAgent, findEagerCode } from "../../../../self-host/build/build.ts";
import { mintToken, startApi } from "../../../harness/server/api.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";

const KIB = 1024;
const VERSION_MAX_BYTES = 4 * KIB;
const HTTP_MAX_BYTES = 800 * KIB;

let bundle: Metafile;
beforeAll(async () => {
  bundle = await buildAgent();
});

test("`version` loads no library and nothing of the other commands", () => {
  const { sources, bytes } = findEagerCode(bundle, "agent/bin/underpass.ts");
  expect(sources).toEqual([
    "agent/bin/underpass.ts",
    "agent/cli/version.ts",
    "protocol/version.ts",
  ]);
  expect(bytes).toBeLessThan(VERSION_MAX_BYTES);
});

test("`http` loads neither YAML, nor the server of files, nor more of undici than it uses", () => {
  const { sources, bytes } = findEagerCode(bundle, "agent/commands/http.ts");
  const unused =
    /node_modules\/(?:yaml|send|mime-db)\/|undici\/lib\/(?:cache|mock|interceptor|web\/websocket)\//;
  expect(sources.filter((source) => unused.test(source))).toEqual([]);
  expect(sources).toContain("node_modules/undici/lib/dispatcher/pool.js");
  expect(bytes).toBeLessThan(HTTP_MAX_BYTES);
});

test("an idle agent has loaded neither the undici of Node.js nor HTTP/2", async () => {
  await using api = await startApi();
  const token = Buffer.from((await mintToken(await api.owner())).wireBytes, "base64");
  const listAtExit = 'process.on("exit", () => console.error(process.moduleLoadList.join("\\n")))';
  const args = ["http", "1", "--server", api.server.url, "--token-file", "TOKEN", "--json"];
  await using agent = await runAgent(args, {
    token,
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listAtExit)}` },
  });
  await agent.event("ready");
  agent.child.kill("SIGINT");
  expect(await agent.exit).toBe(0);
  const loaded = agent.stderr.split("\n").map((line) => line.replace("NativeModule ", ""));
  expect(loaded).toContain("http");
  expect(loaded).not.toContain("internal/deps/undici/undici");
  expect(loaded).not.toContain("http2");
});
