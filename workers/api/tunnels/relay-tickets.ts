/** POST /tunnels/{id}/relay-ticket: the ticket with which the agent of a TCP tunnel serves it at its relay. */
import { RelayAccess } from "../../../protocol/schemas/networks.ts";
import { RelayTicketQuery } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { toHex, toUuid } from "../../../shared/bytes.ts";
import type { TokenPayload } from "../../identity/tokens/capability-token.ts";
import { issueRelayAccess } from "../../identity/tokens/relay-tickets.ts";
import { markPortServed } from "../../store/networks/relay-ports.ts";
import {
  findServedTunnel,
  type ServedTunnel,
  type ServingRefusal,
} from "../../store/tunnels/tcp-tunnels.ts";
import { verifyToken } from "./agent-token.ts";
import { unauthorized, tokenVerifiedByHandler } from "../guard.ts";
import {
  createRouter,
  jsonResponse,
  notFound,
  organizationNotApproved,
  portShareUsed,
  route,
  type ApiContext,
} from "../route.ts";
import { ConnectionRefusedError } from "./refusals.ts";
import { tunnelExpired } from "./setting-changes.ts";
import { parseBearerToken } from "../../../shared/bearer-token.ts";

export const relayTickets = createRouter();

relayTickets.openapi(
  route({
    operationId: "createTunnelRelayTicket",
    method: "post",
    path: "/tunnels/{id}/relay-ticket",
    summary: "Get a relay ticket for a TCP tunnel",
    description:
      "The bearer is the capability token of the agent that serves the tunnel. The ticket is valid for five minutes (docs/protocols/relay-protocol.md). If the tunnel's port is no longer in the relay's range, the ticket is for another one.",
    query: RelayTicketQuery,
    guard: tokenVerifiedByHandler,
    params: IdParams,
    responses: {
      200: jsonResponse("The ticket, and the address of the relay that accepts it.", RelayAccess),
    },
    failures: ["invalid_request", "forbidden", "conflict", "expired", "unavailable"],
  }),
  async (c) => {
    const token = await requireBearerToken(c);
    const claims = { orgId: toUuid(token.organizationId), nonce: toHex(token.nonce) };
    const { id } = c.req.valid("param");
    const { unusable_port: unusablePort } = c.req.valid("query");
    const found = await findServedTunnel(c.var.db, claims, id, unusablePort);
    const tunnel = requireServed(found);
    const port_replaceable = await markPortServed(c.var.db, tunnel.id);
    const access = await issueRelayAccess(c.env, c.var.config, tunnel.relay, {
      kind: "tunnel",
      sub: tunnel.id,
      org: claims.orgId,
      port: tunnel.port,
      mbps: token.bandwidthLimitMbps,
      nonce: claims.nonce,
      cidrs: tunnel.allowedCidrs,
    });
    return c.json({ ...access, port_replaceable }, 200);
  },
);

async function requireBearerToken(c: ApiContext): Promise<TokenPayload> {
  const bearer = parseBearerToken(c.req.header("authorization"));
  if (bearer === null) throw unauthorized();
  try {
    return await verifyToken(c.var.config, bearer);
  } catch (error) {
    if (error instanceof ConnectionRefusedError) throw unauthorized();
    throw error;
  }
}

function requireServed(found: ServedTunnel | ServingRefusal): ServedTunnel {
  if (typeof found === "object") return found;
  switch (found) {
    case "token_unknown":
    case "token_revoked":
      throw unauthorized();
    case "organization_pending":
    case "organization_rejected":
      throw organizationNotApproved(found);
    case "over_budget":
      throw new ApiError(
        "forbidden",
        "This month's budget of the token, its master key or its organization is used up. An owner or admin can raise it.",
      );
    case "served_by_another":
      throw new ApiError("forbidden", "No agent with this token serves the tunnel.");
    case "not_found":
      throw notFound("tunnel");
    case "not_tcp":
      throw new ApiError(
        "invalid_request",
        "Only TCP tunnels use a relay, and this tunnel is an HTTP tunnel.",
      );
    case "tunnel_stopped":
      throw new ApiError("conflict", "The tunnel is stopped. Start it first.");
    case "tunnel_expired":
      throw tunnelExpired();
    case "exhausted":
      throw new ApiError(
        "unavailable",
        "The relay has no free TCP port: its operator has changed the range, and all ports are reserved. Try again later.",
      );
    case "share_used":
      throw portShareUsed();
  }
}
