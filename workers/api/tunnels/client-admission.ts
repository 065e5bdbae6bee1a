/**
 * Admits a client of `underpass connect` to a TCP tunnel. Like an agent's admission it runs in a request of its own
 * (`InternalApi.admitClient`), because everything that a request references lives as long as the client's connection.
 */
import { createDatabase } from "../../jobs/outbox.ts";
import { getConfig } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import type { AdmittedClient, ClientRequest, ClientVerdict } from "../../internal-api-binding.ts";
import type { TokenPayload } from "../../identity/tokens/capability-token.ts";
import { toHex, toUuid } from "../../../shared/bytes.ts";
import { tunnelObject } from "../../objects.ts";
import { findTokenRefusal } from "../../store/tokens/spending.ts";
import type { TokenRefusal } from "../../store/tokens/token-refusal.ts";
import {
  findStreamTarget,
  type StreamTarget,
  type TunnelRefusal,
} from "../../store/tunnels/tcp-tunnels.ts";
import { requireAllowedSubdomain, requireProject, verifyToken } from "./agent-token.ts";
import { ConnectionRefusedError, toRefusal, toTokenRefusal } from "./refusals.ts";

export async function admitClient(
  env: Env,
  { bearer, tunnel, address }: ClientRequest,
): Promise<ClientVerdict> {
  try {
    const token = await verifyToken(getConfig(env), bearer);
    const { id: tunnelId, localPort } = await findTarget(env, token, tunnel);
    const tokenExpiresAtMs = token.expiresAtSeconds * 1000;
    const tokenNonce = toHex(token.nonce);
    const admission = { tunnelId, localPort, address, tokenNonce, tokenExpiresAtMs };
    return { admission, orgId: toUuid(token.organizationId) };
  } catch (error) {
    if (error instanceof ConnectionRefusedError) return toRefusal(error);
    throw error;
  }
}

/** Disconnects a client whose token was revoked while it was being admitted. */
export async function recheckClient(env: Env, { admission, orgId }: AdmittedClient): Promise<void> {
  const { tunnelId, tokenNonce } = admission;
  const token = { orgId, nonce: tokenNonce };
  const refusal = await findTokenRefusal(createDatabase(env, orgId), token);
  if (refusal === "token_unknown" || refusal === "token_revoked")
    await tunnelObject(env, tunnelId).disconnectClients([tokenNonce]);
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

async function findTarget(env: Env, token: TokenPayload, tunnel: string): Promise<StreamTarget> {
  const claims = { orgId: toUuid(token.organizationId), nonce: toHex(token.nonce) };
  const which = UUID.test(tunnel) ? { id: tunnel } : { subdomain: tunnel };
  const db = createDatabase(env, claims.orgId);
  const target = await findStreamTarget(db, claims, which);
  if (typeof target === "string") throw explainRefusal(target);
  requireProject(token, target.projectSlug);
  requireAllowedSubdomain(token, target.subdomain);
  return target;
}

function explainRefusal(refusal: TokenRefusal | TunnelRefusal): ConnectionRefusedError {
  switch (refusal) {
    case "token_unknown":
    case "token_revoked":
    case "organization_pending":
    case "organization_rejected":
    case "over_budget":
      return toTokenRefusal(refusal);
    case "not_found":
      return new ConnectionRefusedError(
        "tunnel_deleted",
        "there is no tunnel with this id or subdomain",
      );
    case "not_tcp":
      return new ConnectionRefusedError(
        "invalid_request",
        "the tunnel is an HTTP tunnel, not a TCP tunnel",
        "wrong_protocol",
      );
    case "tunnel_expired":
      return new ConnectionRefusedError("tunnel_expired", "the tunnel has expired");
    case "tunnel_stopped":
      return new ConnectionRefusedError("tunnel_stopped", "the tunnel was stopped");
  }
}
