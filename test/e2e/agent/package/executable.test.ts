/** The agent as one executable file, which needs no Node.js. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SERVICE_VERSION } from "../../../../protocol/version.ts";
import { buildExecutable, getPlatform } from "../../../../self-host/build/agent-executable.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../../harness/tunnel/origin.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";

let dir: string;
let api: TestApi;
let origin: RawOrigin;
/** Without any Node.js in its PATH. */
let options: { command: string[]; env: { PATH: string } };

beforeAll(async () => {
  dir = await createTemporaryDir();
  const out = join(dir, "underpass");
  options = { command: [out], env: { PATH: dir } };
  [api, origin] = await Promise.all([
    startApi(),
    startRawOrigin(() => OK),
    buildExecutable({ platform: getPlatform(), node: process.execPath, out }),
  ]);
});
afterAll(async () => {
  await api.stop();
  await origin.stop();
  await rm(dir, { recursive: true });
});

test("prints its version", async () => {
  await using agent = await runAgent(["version"], options);
  expect(await agent.exit).toBe(0);
  expect(agent.stdout).toBe(`underpass ${SERVICE_VERSION}\n`);
  expect(agent.stderr).toBe("");
});

test("serves a visitor, and ends at Ctrl-C", async () => {
  const token = Buffer.from((await mintToken(await api.owner())).wireBytes, "base64");
  const args = ["http", String(origin.port), "--server", api.server.url, "--token-file", "TOKEN"];
  await using agent = await runAgent([...args, "--subdomain", "executable", "--json"], {
    ...options,
    token,
  });
  await agent.event("ready");
  const request = "GET / HTTP/1.1\r\nHost: executable.localhost\r\n\r\n";
  expect((await exchange(api.server.port, request)).status).toBe(200);
  agent.child.kill("SIGINT");
  expect(await agent.exit).toBe(0);
});
