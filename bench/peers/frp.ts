/** frp with a proxy of type `http`, which chooses the tunnel by the host of each request, as Underpass does. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reservePort } from "../../test/harness/ports.ts";
import { spawnQuiet, stopChild } from "../processes.ts";
import { findProgram, waitForAnswer, waitForPort, type Peer } from "./peer.ts";

const HOST = "frp.localhost";

/** @returns null if frp has not been built. Its connection is not encrypted, as our agent's to the same machine. */
export async function startFrp(originPort: number): Promise<Peer | null> {
  const serverProgram = findProgram("frps");
  const clientProgram = findProgram("frpc");
  if (serverProgram === null || clientProgram === null) return null;
  const directory = await mkdtemp(join(tmpdir(), "frp-"));
  const [controlPort, port] = [await reservePort(), await reservePort()];
  const serverConfig = join(directory, "frps.toml");
  const clientConfig = join(directory, "frpc.toml");
  await writeFile(
    serverConfig,
    `bindAddr = "127.0.0.1"
bindPort = ${controlPort}
vhostHTTPPort = ${port}
log.level = "error"
`,
  );
  await writeFile(
    clientConfig,
    `serverAddr = "127.0.0.1"
serverPort = ${controlPort}
transport.tls.enable = false
log.level = "error"
[[proxies]]
name = "bench"
type = "http"
localIP = "127.0.0.1"
localPort = ${originPort}
customDomains = ["${HOST}"]
`,
  );
  const server = spawnQuiet(serverProgram, ["-c", serverConfig]);
  await waitForPort(controlPort);
  const client = spawnQuiet(clientProgram, ["-c", clientConfig]);
  await waitForAnswer(port, HOST);
  return {
    name: "frp, type http",
    port,
    host: HOST,
    processes: [
      { name: "frps", pid: server.pid ?? 0 },
      { name: "frpc", pid: client.pid ?? 0 },
    ],
    async stop() {
      await stopChild(client);
      await stopChild(server);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
