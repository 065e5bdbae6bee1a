/** Asks the API for the ticket that opens a relay connection: for a tunnel that this agent serves, or for a network. */
import { explainError } from "../error-message.ts";
import { RelayAccess } from "../../protocol/schemas/networks.ts";
import { RetryableError, type ServiceApi } from "../service-api.ts";
import { RejectionError } from "../rejection-error.ts";

/**
 * @param path `/tunnels/{id}/relay-ticket` or `/private-networks/{id}/relay-ticket`
 * @param unusablePort the tunnel's port, which its relay can't listen on: another one is wanted.
 * @throws RejectionError when a retry can't succeed; any other error is worth a retry.
 */
export async function fetchRelayAccess(
  api: ServiceApi,
  path: string,
  signal: AbortSignal,
  unusablePort?: number,
): Promise<RelayAccess> {
  try {
    const query = unusablePort === undefined ? "" : `?unusable_port=${unusablePort}`;
    return await api.call(RelayAccess, "POST", `${path}${query}`, { signal });
  } catch (error) {
    // Another agent is serving, which may change.
    const isConflict = error instanceof RejectionError && error.reason === "conflict";
    throw isConflict ? new RetryableError(explainError(error)) : error;
  }
}
