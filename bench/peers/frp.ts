/** frp with a proxy of type `http`, which chooses the tunnel by the host of each request, as Underpass does. */
import { reservePort } from "../../test/harness/ports.ts";
import { findProgram, startPrograms, type Peer } from "./peer.ts";

const HOST = "frp.localhost";

/** @returns null if frp has not been built. Its connection is not encrypted, as our agent's to the same machine. */
export async function startFrp(originPort: number): Promise<Peer | null> {
  const server = findProgram("frps");
  const client = findProgram("frpc");
  if (server === null || client === null) return null;
  const controlPort = await reservePort();
  const port = await reservePort();
  const serverConfig = `bindAddr = "127.0.0.1"
bindPort = ${controlPort}
vhostHTTPPort = ${port}
log.level = "error"
`;
  const clientConfig = `serverAddr = "127.0.0.1"
serverPort = ${controlPort}
transport.tls.enable = false
log.level = "error"
[[proxies]]
name = "bench"
type = "http"
localIP = "127.0.0.1"
localPort = ${originPort}
customDomains = ["${HOST}"]
`;
  return startPrograms({
    name: "frp, type http",
    port,
    host: HOST,
    controlPort,
    server: { name: "frps", path: server, option: "-c", config: serverConfig },
    client: { name: "frpc", path: client, option: "-c", config: clientConfig },
  });
}
