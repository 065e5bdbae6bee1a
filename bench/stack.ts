/** Used by most benchmarks: the self-hosted server, an agent, and the local server behind it. */
import { spawn, type ChildProcess } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  startIdentityProvider,
  type IdentityProvider,
} from "../test/harness/fakes/identity-provider.ts";
import { startServer, type ServerOptions, type TestServer } from "../test/harness/server/server.ts";
import { callApi, type ApiCaller } from "./api.ts";
import { ROOT, startProgram, stopChild, type Program } from "./processes.ts";

export interface BenchStack {
  server: TestServer;
  /** For visitors of a tunnel with an identity gate. */
  provider: IdentityProvider;
  workerdPid: number;
  origin: Program;
  agent: ChildProcess;
  /** Host and port of the tunnel. */
  host: string;
  token: Buffer;
  /** An access token of the owner. */
  accessToken: string;
  /** With which the owner signs in. */
  email: string;
  password: string;
  /** The tunnel that the agent serves. */
  tunnelId: string;
  stop(): Promise<void>;
}

/** @param options of the server, besides those of tests. */
export async function startStack(options: ServerOptions = {}): Promise<BenchStack> {
  const provider = await startIdentityProvider();
  const server = await startServer({
    ...options,
    env: { ...provider.settings, ...options.env },
  });
  await provider.register(`http://localhost:${server.port}/edge-auth/callback`);
  const origin = await startProgram("origin.ts");
  const { token, accessToken, email, password } = await createFirstAccount(server);
  const tokenFile = join(server.dataDir, "bench.token");
  await writeFile(tokenFile, token, { mode: 0o600 });
  const agent = await startAgent(server, origin.port, tokenFile, "bench");
  return {
    server,
    provider,
    workerdPid: await server.getPid("workerd"),
    origin,
    agent,
    host: `bench.localhost:${server.port}`,
    token,
    accessToken,
    email,
    password,
    tunnelId: await getOnlyTunnelId({ server, accessToken }),
    async stop() {
      await stopChild(agent);
      await origin.stop();
      await server.stop();
      await provider[Symbol.asyncDispose]();
    },
  };
}

export async function createFirstAccount(server: TestServer) {
  const setUp = await postJson(server, "/setup", { code: server.setupCode, label: "bench" });
  const { email = "", password = "", wire_bytes_b64: wireBytes } = setUp as Record<string, string>;
  const summary = await postJson(server, "/auth/login", { email, password });
  const { access_token: accessToken } = summary as { access_token: string };
  return { token: Buffer.from(wireBytes ?? "", "base64"), accessToken, email, password };
}

async function getOnlyTunnelId(caller: ApiCaller): Promise<string> {
  const [tunnel] = await callApi<{ id: string }[]>(caller, "GET", "/tunnels");
  return tunnel!.id;
}

async function postJson(server: TestServer, path: string, body: unknown): Promise<unknown> {
  const answer = await fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

function startAgent(server: TestServer, port: number, tokenFile: string, subdomain: string) {
  const args = ["http", String(port), "--server", server.url, "--subdomain", subdomain];
  const quiet = ["--token-file", tokenFile, "--log-level", "info"];
  const command = join(ROOT, "agent/bin/launch.js");
  const agent = spawn(process.execPath, [command, ...args, ...quiet], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise<ChildProcess>((resolve, reject) => {
    agent.once("exit", (code) => reject(new Error(`the agent exited with ${code}`)));
    agent.stdout.once("data", () => resolve(agent));
    agent.stdout.resume();
  });
}
