/** The agent as one executable file, which needs no Node.js. */
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SERVICE_VERSION } from "../../../../protocol/version.ts";
import { buildExecutable, getPlatform } from "../../../../self-host/build/agent-executable.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { createCertificate } from "../../../harness/fakes/certificate.ts";
import { startMiddlebox } from "../../../harness/fakes/middlebox.ts";
import { mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../../harness/tunnel/origin.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";

let dir: string;
let api: TestApi;
let origin: RawOrigin;
let token: Buffer;
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
  token = Buffer.from((await mintToken(await api.owner())).wireBytes, "base64");
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

test.runIf(process.platform === "linux")("installs itself as a service", async () => {
  const [path = ""] = options.command;
  await writeFile(join(dir, "systemctl"), "#!/bin/sh\n");
  await chmod(join(dir, "systemctl"), 0o755);
  await writeFile(
    join(dir, "underpass.yml"),
    "version: 1\ntoken_file: token\ntunnels: {web: {local: 1}}\n",
  );
  await writeFile(join(dir, "token"), token);
  await using agent = await runAgent(
    ["service", "install", "--config", join(dir, "underpass.yml")],
    {
      command: options.command,
      env: { ...options.env, XDG_CONFIG_HOME: join(dir, "config") },
    },
  );
  expect({ code: await agent.exit, stderr: agent.stderr }).toEqual({ code: 0, stderr: "" });
  const unit = await readFile(join(dir, "config/systemd/user/underpass.service"), "utf8");
  expect(unit).toContain(
    `\nExecStart="${path}" "start" "--all" "--config" "${dir}/underpass.yml"\n`,
  );
});

test.each(["NODE_EXTRA_CA_CERTS", "UNDERPASS_CA_FILE"])(
  "trusts the CA of %s, and serves a visitor",
  async (variable) => {
    const authority = createCertificate({ commonName: "Example Corp CA" });
    const caFile = join(dir, "ca.pem");
    await writeFile(caFile, authority.cert);
    const certificate = createCertificate({ issuer: authority });
    await using front = await startMiddlebox(api.server.port, { certificate });
    const name = `executable-${variable.toLowerCase().replaceAll("_", "-")}`;
    const args = ["http", String(origin.port), "--server", front.url, "--token-file", "TOKEN"];
    await using agent = await runAgent([...args, "--subdomain", name, "--json"], {
      command: options.command,
      env: { ...options.env, [variable]: caFile },
      token,
    });
    await agent.event("ready");
    const request = `GET / HTTP/1.1\r\nHost: ${name}.localhost\r\n\r\n`;
    expect((await exchange(api.server.port, request)).status).toBe(200);
  },
);
