/** rathole, which forwards the bytes of TCP connections without reading them: what a tunnel of this kind can reach. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reservePort } from "../../test/harness/ports.ts";
import { spawnQuiet, stopChild } from "../processes.ts";
import { findProgram, waitForAnswer, waitForPort, type Peer } from "./peer.ts";

/** @returns null if rathole has not been built. */
export async function startRathole(originPort: number): Promise<Peer | null> {
  const program = findProgram("rathole");
  if (program === null) return null;
  const directory = await mkdtemp(join(tmpdir(), "rathole-"));
  const [controlPort, port] = [await reservePort(), await reservePort()];
  const serverConfig = join(directory, "server.toml");
  const clientConfig = join(directory, "client.toml");
  await writeFile(
    serverConfig,
    `[server]
bind_addr = "127.0.0.1:${controlPort}"
default_token = "benchmark"
[server.services.bench]
bind_addr = "127.0.0.1:${port}"
`,
  );
  await writeFile(
    clientConfig,
    `[client]
remote_addr = "127.0.0.1:${controlPort}"
default_token = "benchmark"
[client.services.bench]
local_addr = "127.0.0.1:${originPort}"
`,
  );
  const env = { RUST_LOG: "off" };
  const server = spawnQuiet(program, ["--server", serverConfig], env);
  await waitForPort(controlPort);
  const client = spawnQuiet(program, ["--client", clientConfig], env);
  await waitForAnswer(port, "localhost");
  return {
    name: "rathole, TCP",
    port,
    host: "localhost",
    processes: [
      { name: "server", pid: server.pid ?? 0 },
      { name: "client", pid: client.pid ?? 0 },
    ],
    async stop() {
      await stopChild(client);
      await stopChild(server);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
