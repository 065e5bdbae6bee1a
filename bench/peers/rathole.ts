/** rathole, which forwards the bytes of TCP connections without reading them: what a tunnel of this kind can reach. */
import { reservePort } from "../../test/harness/ports.ts";
import { findProgram, startPrograms, type Peer } from "./peer.ts";

/** @returns null if rathole has not been built. */
export async function startRathole(originPort: number): Promise<Peer | null> {
  const path = findProgram("rathole");
  if (path === null) return null;
  const controlPort = await reservePort();
  const port = await reservePort();
  const serverConfig = `[server]
bind_addr = "127.0.0.1:${controlPort}"
default_token = "benchmark"
[server.services.bench]
bind_addr = "127.0.0.1:${port}"
`;
  const clientConfig = `[client]
remote_addr = "127.0.0.1:${controlPort}"
default_token = "benchmark"
[client.services.bench]
local_addr = "127.0.0.1:${originPort}"
`;
  return startPrograms({
    name: "rathole, TCP",
    port,
    host: "localhost",
    controlPort,
    server: { name: "server", path, option: "--server", config: serverConfig },
    client: { name: "client", path, option: "--client", config: clientConfig },
  });
}
