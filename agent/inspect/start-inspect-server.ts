import type { ListenAddress } from "../connect/listen-address.ts";
import { getErrorMessage } from "../error-message.ts";
import type { HttpTunnel } from "../http-tunnel.ts";
import { DEFAULT_INSPECT_ADDRESS, InspectServer, isLoopback } from "./inspect-server.ts";

/** Starts the server, and sets the tunnel's `inspectUrl`. The tunnel works without it, so a failure is only a notice. */
export async function startInspectServer(
  tunnel: HttpTunnel,
  address: ListenAddress = DEFAULT_INSPECT_ADDRESS,
): Promise<void> {
  const { host, port = DEFAULT_INSPECT_ADDRESS.port! } = address;
  try {
    tunnel.inspectUrl = await new InspectServer(tunnel, host).listen(port);
  } catch (error) {
    tunnel.emit("notice", `--inspect can't listen at ${host}:${port}: ${getErrorMessage(error)}`);
    return;
  }
  if (isLoopback(host)) return;
  tunnel.emit(
    "notice",
    `--inspect: other machines that reach ${tunnel.inspectUrl} can read the paths of all requests`,
  );
}
