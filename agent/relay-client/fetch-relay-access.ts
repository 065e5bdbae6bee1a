/** Asks the API for the ticket that opens a relay connection: for a tunnel that this agent serves, or for a network. */
import { getErrorMessage } from "../error-message.ts";
import { RelayAccess } from "../../protocol/schemas/networks.ts";
import { RetryableError, type ServiceApi } from "../service-api.ts";
import { RejectionError } from "../rejection-error.ts";

/**
 * @param path `/tunnels/{id}/relay-ticket` or `/private-networks/{id}/relay-ticket`
 * @throws RejectionError when a retry can't succeed; any other error is worth a retry.
 */
export async function fetchRelayAccess(
  api: ServiceApi,
  path: string,
  signal: AbortSignal,
): Promise<RelayAccess> {
  try {
    return await api.call(RelayAccess, "POST", path, { signal });
  } catch (error) {
    // Another agent is serving, which may change.
    const isConflict = error instanceof RejectionError && error.reason === "conflict";
    throw isConflict ? new RetryableError(getErrorMessage(error)) : error;
  }
}
