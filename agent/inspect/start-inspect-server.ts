import type { ListenAddress } from "../connect/listen-address.ts";
import { explainError } from "../error-message.ts";
import { DEFAULT_INSPECT_ADDRESS, InspectServer } from "./inspect-server.ts";
import type { InspectedTunnels } from "./inspected-tunnels.ts";
import { isLoopback } from "../../shared/hosts.ts";

/** A tunnel, or several in one process. */
interface InspectedAgent {
  inspectUrl: string | undefined;
  emit(event: "notice", message: string): unknown;
}

/**
 * Starts the server, and sets the agent's `inspectUrl`. Tunnels work without it, so a failure is only a notice.
 * @returns a function that stops the server.
 */
export async function startInspectServer(
  agent: InspectedAgent,
  tunnels: InspectedTunnels,
  given?: ListenAddress | "off",
): Promise<() => void> {
  if (given === "off") return () => undefined;
  const { host, port = DEFAULT_INSPECT_ADDRESS.port! } = given ?? DEFAULT_INSPECT_ADDRESS;
  const server = new InspectServer(tunnels, host);
  try {
    agent.inspectUrl = await server.listen(port);
    // A program that is configured with the option's port would ask another server.
    const isOtherPort = port !== 0 && !agent.inspectUrl.endsWith(`:${port}`);
    if (given?.port !== undefined && isOtherPort) {
      agent.emit(
        "notice",
        `--inspect: port ${port} is in use by another program; this agent listens at ${agent.inspectUrl}`,
      );
    }
  } catch (error) {
    agent.emit("notice", `--inspect can't listen at ${host}:${port}: ${explainError(error)}`);
    return () => undefined;
  }
  if (!isLoopback(host)) {
    agent.emit(
      "notice",
      `--inspect: other machines that reach ${agent.inspectUrl} can read the paths of all requests`,
    );
  }
  return () => server.close();
}
