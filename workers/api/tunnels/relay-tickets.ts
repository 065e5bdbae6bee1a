/** POST /tunnels/{id}/relay-ticket: what the agent of a TCP tunnel shows its relay, from its registration on. */
import { RelayAccess } from "../../../protocol/schemas/networks.ts";
import { Id } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { toHex, toUuid } from "../../../shared/bytes.ts";
import type { TokenPayload } from "../../identity/tokens/capability-token.ts";
import { issueRelayAccess } from "../../identity/tokens/relay-tickets.ts";
import { findServedTunnel, type ServedTunnel } from "../../store/tunnels/tcp-tunnels.ts";
import { readToken } from "./admission.ts";
import { unauthorized, bearerVerifiedByHandler } from "../guard.ts";
import { jsonResponse, createRouter, notFound, route, type ApiContext } from "../route.ts";
import { ConnectionRefusal } from "./refusals.ts";
import { parseBearerToken } from "../../../shared/bearer-token.ts";

export const relayTickets = createRouter();

relayTickets.openapi(
  route({
    method: "post",
    path: "/tunnels/{id}/relay-ticket",
    summary: "Let the agent of a TCP tunnel serve it at its relay",
    description:
      "The bearer is the capability token whose agent serves the tunnel. The ticket is good for five minutes (docs/relay-protocol.md).",
    guard: bearerVerifiedByHandler,
    params: Id,
    responses: { 200: jsonResponse("The ticket, and where to show it.", RelayAccess) },
    failures: ["invalid_request", "forbidden", "conflict", "expired"],
  }),
  async (c) => {
    const token = await requireBearerToken(c);
    const shown = { orgId: toUuid(token.organizationId), nonce: toHex(token.nonce) };
    const found = await findServedTunnel(c.var.db, shown, c.req.valid("param").id);
    const tunnel = requireServed(found);
    const access = await issueRelayAccess(c.var.config, tunnel.relay, {
      kind: "tunnel",
      sub: tunnel.id,
      org: shown.orgId,
      port: tunnel.port,
      mbps: token.bandwidthLimitMbps,
      nonce: shown.nonce,
      cidrs: tunnel.allowedCidrs,
    });
    return c.json(access, 200);
  },
);

async function requireBearerToken(c: ApiContext): Promise<TokenPayload> {
  const bearer = parseBearerToken(c.req.header("authorization"));
  if (bearer === null) throw unauthorized();
  try {
    return await readToken(c.var.config, bearer);
  } catch (error) {
    if (error instanceof ConnectionRefusal) throw unauthorized();
    throw error;
  }
}

function requireServed(found: ServedTunnel | string): ServedTunnel {
  if (typeof found === "object") return found;
  switch (found as Exclude<Awaited<ReturnType<typeof findServedTunnel>>, ServedTunnel>) {
    case "token_unknown":
    case "token_revoked":
      throw unauthorized();
    case "organization_not_approved":
      throw new ApiError("forbidden", "The organization waits for approval.");
    case "over_budget":
      throw new ApiError("forbidden", "The token's budget of this month is spent.");
    case "served_by_another":
      throw new ApiError("forbidden", "No agent of this token serves the tunnel.");
    case "not_found":
      throw notFound("such tunnel");
    case "not_tcp":
      throw new ApiError("invalid_request", "The tunnel carries HTTP: its visitors use no relay.");
    case "tunnel_stopped":
      throw new ApiError("conflict", "The tunnel was stopped.");
    case "tunnel_expired":
      throw new ApiError("expired", "The tunnel has expired. Make a new one.");
  }
}
