/** The relay's port of a network's server, and why a network can't have one. */
import { ApiError } from "../../errors.ts";
import type { Network } from "../../store/networks/networks.ts";
import { findRelay, type RelayRow } from "../../store/networks/relays.ts";
import { replaceServerPort, type ServerPortRefusal } from "../../store/networks/server.ts";
import {
  getCallerActor,
  invalidField,
  organizationNotApproved,
  portShareUsed,
  type ApiContext,
} from "../route.ts";
import { networkNotFound } from "./router.ts";

interface ServerPort {
  relay: RelayRow;
  port: number;
}

/**
 * The port that leads to the network's server. One that is not in its relay's range, which the operator may have
 * changed, is replaced first.
 */
export async function requireServerPort(
  c: ApiContext,
  network: Pick<Network, "id" | "relayId" | "reservedUdpPort">,
): Promise<ServerPort> {
  const current = await findServerPort(c, network);
  if (current) return current;
  const replaced = await replaceServerPort(c.var.db, getCallerActor(c), network.id);
  if (replaced === "not_found") throw networkNotFound();
  if (typeof replaced === "string") throw toServerPortError(replaced);
  const found = await findServerPort(c, replaced);
  // The operator is changing the range again.
  if (!found) throw toServerPortError("exhausted");
  return found;
}

async function findServerPort(
  c: ApiContext,
  { relayId, reservedUdpPort: port }: Pick<Network, "relayId" | "reservedUdpPort">,
): Promise<ServerPort | null> {
  if (relayId === null || port === null) return null;
  const relay = await findRelay(c.var.db, relayId);
  return relay && port >= relay.firstPort && port <= relay.lastPort ? { relay, port } : null;
}

export function toServerPortError(refusal: ServerPortRefusal): ApiError {
  switch (refusal) {
    case "unknown_relay":
      return invalidField("relay_id", "names an unknown relay");
    case "no_relay":
      return new ApiError(
        "unavailable",
        "No relay is available for private networks. Start a relay, or send the public_endpoint of a server that is reached without one.",
      );
    case "exhausted":
      return new ApiError(
        "unavailable",
        "The relay has no free UDP port. Send another relay_id, or the public_endpoint of a server that is reached without a relay.",
      );
    case "share_used":
      return portShareUsed();
    case "organization_pending":
    case "organization_rejected":
      return organizationNotApproved(refusal);
  }
}
