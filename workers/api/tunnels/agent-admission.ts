/**
 * Admits an agent: verifies its capability token and registers its tunnel.
 *
 * This runs in a request of its own (`InternalApi.admitAgent`). Everything that the request of an agent's connection references
 * lives as long as the connection, and a database client would be half a megabyte of it.
 */
import type { AgentAdmission } from "../../../durable-objects/tunnel/admission.ts";
import { RANDOM_NAME_MAX_TRIES } from "../../limits.ts";
import {
  describeLongSlug,
  isAllowedLabel,
  findLabelError,
  findReservedLabelError,
  toLabel,
  generateRandomName,
} from "../../../protocol/names.ts";
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { PLAN_LIMITS } from "../../../protocol/schemas/accounts/entitlements.ts";
import { createDatabase } from "../../jobs/outbox.ts";
import { getConfig, privateTcpUrl, publicUrl, tcpUrl, type Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import type { AgentRequest, AgentVerdict } from "../../internal-api-binding.ts";
import type { TokenPayload } from "../../identity/tokens/capability-token.ts";
import { toHex, toUuid } from "../../../shared/bytes.ts";
import { refreshTunnelStatuses } from "../../store/tunnels/object-sync.ts";
import { tunnelObject } from "../../objects.ts";
import { UndeliveredError, type Database } from "../../store/database.ts";
import { isBoundTo } from "../../store/domains/agent-domains.ts";
import { registerPlainTunnel } from "../../store/tunnels/plain-registrations.ts";
import {
  registerTunnel,
  type RegisteredTunnel,
  type Registration,
  type RegistrationRefusal,
  type RegistrationRequest,
} from "../../store/tunnels/registrations.ts";
import { resumeTunnel } from "../../store/tunnels/resume.ts";
import { findNameAtPort } from "../../store/tunnels/tcp-ports.ts";
import { findTokenRefusal } from "../../store/tokens/spending.ts";
import { LimitReachedError } from "../../store/bounds.ts";
import { planLacksPassword, prepareGates } from "./agent-gates.ts";
import { resolveRequestedTunnel, toDomainRefusal } from "./agent-hosts.ts";
import { requireAllowedSubdomain, requireProject, verifyToken } from "./agent-token.ts";
import {
  ConnectionRefusedError,
  describeOutsideRanges,
  toRefusal,
  toTokenRefusal,
} from "./refusals.ts";

export async function admitAgent(env: Env, request: AgentRequest): Promise<AgentVerdict> {
  try {
    const config = getConfig(env);
    const token = await verifyToken(config, request.bearer);
    const db = createDatabase(env, toUuid(token.organizationId));
    const registered = await register(env, db, token, request);
    requireShard(registered.tunnel, request.query.shard);
    const host = await findPublicHost(config, db, registered.tunnel, request.query);
    return {
      admission: {
        ...toAdmission(config, token, { ...registered, host }, request),
        ...(request.query.shard !== undefined && { shard: request.query.shard }),
      },
    };
  } catch (error) {
    if (error instanceof UndeliveredError)
      return { refusal: "internal", message: "the tunnel's gates are not in force yet" };
    if (error instanceof ConnectionRefusedError) return toRefusal(error);
    if (error instanceof LimitReachedError) {
      const subcode = error.retryAfterMs === null ? "tunnel_limit" : "daily_limit";
      return { refusal: "quota_exceeded", message: error.message, subcode };
    }
    throw error;
  }
}

/** Disconnects an agent whose token was revoked, or spent its budget, while the agent was being admitted. */
export async function recheckAdmission(env: Env, admission: AgentAdmission): Promise<void> {
  const { orgId, tokenNonce, tunnelId } = admission;
  const token = { orgId, nonce: tokenNonce };
  switch (await findTokenRefusal(createDatabase(env, orgId), token)) {
    case null:
      return;
    case "token_unknown":
    case "token_revoked":
      await tunnelObject(env, tunnelId).revokeToken(tokenNonce);
      return;
    case "over_budget":
      await tunnelObject(env, tunnelId).disconnectOverBudget(tokenNonce);
  }
}

/** Finds or creates the tunnel's row. */
async function register(
  env: Env,
  db: Database,
  token: TokenPayload,
  request: AgentRequest,
): Promise<RegisteredTunnel> {
  const { query, address } = request;
  const gates = await prepareGates(env, db, token, request);
  for (let tries = 1; ; tries++) {
    const requested = await resolveRequestedTunnel(getConfig(env), db, token, query);
    const { projectSlug, domain } = requested;
    requireProject(token, projectSlug);
    const name = requested.name ?? generateRandomName(projectSlug);
    if (name === null) throw slugTooLong(projectSlug);
    const label = toLabel(name, projectSlug);
    requireUsableLabel(token, label);
    const registration = await registerWithFreshStatus(env, db, {
      orgId: toUuid(token.organizationId),
      tokenNonce: toHex(token.nonce),
      ip: address,
      name,
      hasRandomName:
        requested.name === undefined && query.remote_port === undefined && domain === null,
      label,
      projectSlug,
      protocol: query.protocol,
      localPort: query.port,
      ttlSeconds: query.ttl,
      resumeTunnelId: query.tunnel,
      isFurtherConnection: query.shard !== undefined,
      remotePort: query.remote_port,
      isPrivate: query.private === true,
      allowedCidrs: query.allow,
      gates,
      domain: query.tunnel === undefined ? domain : null,
    });
    if ("tunnel" in registration) return registration;
    const { refusal, freeAt = null } = registration;
    // When two agents bring a domain at the same time, the second one finds it at the tunnel of the first.
    const canTryAgain = refusal === "duplicate_name" || refusal === "domain_in_use";
    if (refusal === "port_taken") throw await explainTakenPort(db, token, query.remote_port!);
    if (!canTryAgain || requested.name !== undefined || tries >= RANDOM_NAME_MAX_TRIES)
      throw explainRefusal(refusal, { config: getConfig(env), label, freeAt, query });
  }
}

/** Names the tunnel that has the port, if the token may serve it: running a command without `--subdomain` again is refused. */
async function explainTakenPort(
  db: Database,
  { organizationId, allowedSubdomains, project }: TokenPayload,
  port: number,
): Promise<ConnectionRefusedError> {
  const name =
    project === null ? await findNameAtPort(db, toUuid(organizationId), port) : undefined;
  const message = `port ${port} is taken`;
  return name !== undefined && isAllowedLabel(allowedSubdomains, name)
    ? new ConnectionRefusedError("duplicate_name", `${message} by ${name}`, "port_of_own_tunnel")
    : new ConnectionRefusedError("duplicate_name", message, "port_taken");
}

function slugTooLong(projectSlug: string): ConnectionRefusedError {
  const message = `the project's slug ${describeLongSlug(projectSlug)}`;
  return new ConnectionRefusedError("invalid_request", message);
}

function requireUsableLabel(token: TokenPayload, label: string): void {
  const labelError = findLabelError(label);
  if (labelError !== null)
    throw new ConnectionRefusedError("invalid_request", `the name ${labelError}`);
  const reservedError = findReservedLabelError(label);
  if (reservedError !== null)
    throw new ConnectionRefusedError(
      "duplicate_name",
      `${label} ${reservedError}`,
      "name_unavailable",
    );
  requireAllowedSubdomain(token, label);
}

function requireShard({ shards }: RegisteredTunnel["tunnel"], shard = 0): void {
  if (shard >= shards) {
    throw new ConnectionRefusedError(
      "invalid_request",
      `the tunnel has no shard ${shard}: its shards are 0 to ${shards - 1}`,
    );
  }
}

/** Rows that cause a refusal may be stale: their tunnels confirm their status before the refusal is final. */
async function registerWithFreshStatus(
  env: Env,
  db: Database,
  request: RegistrationRequest,
): Promise<Registration> {
  const resumed = await resumeTunnel(db, request);
  if (resumed) return resumed;
  if (request.isFurtherConnection)
    throw new ConnectionRefusedError("going_away", "the agent does not serve this tunnel yet");
  const plain = await registerPlainTunnel(db, request);
  if (plain) return plain;
  const first = await registerTunnel(db, request);
  if ("tunnel" in first || first.staleTunnelIds.length === 0) return first;
  await refreshTunnelStatuses(env, db, first.staleTunnelIds);
  return registerTunnel(db, request);
}

interface RefusedRegistration {
  config: Config;
  label: string;
  freeAt: Date | null;
  query: AgentRequest["query"];
}

function explainRefusal(
  refusal: Exclude<RegistrationRefusal, "port_taken">,
  { config, label, freeAt, query }: RefusedRegistration,
): ConnectionRefusedError {
  if (typeof refusal === "object") {
    const message = `port ${query.remote_port} ${describeOutsideRanges(refusal)}`;
    return new ConnectionRefusedError("invalid_request", message, "port_out_of_range");
  }
  switch (refusal) {
    case "token_unknown":
    case "token_revoked":
    case "organization_pending":
    case "organization_rejected":
    case "over_budget":
      return toTokenRefusal(refusal);
    case "project_not_found":
      return new ConnectionRefusedError(
        "forbidden",
        "the project does not exist",
        "project_not_found",
      );
    case "tunnel_deleted":
      return new ConnectionRefusedError("tunnel_deleted", "the tunnel was deleted");
    case "tunnel_expired":
      return new ConnectionRefusedError("tunnel_expired", "the tunnel has expired");
    case "tunnel_stopped":
      return new ConnectionRefusedError("tunnel_stopped", "the tunnel was stopped");
    case "duplicate_name":
      return new ConnectionRefusedError(
        "duplicate_name",
        freeAt === null
          ? `${label} is taken`
          : `reserved until ${freeAt.toISOString()}: another organization used ${label}`,
        "name_unavailable",
      );
    case "other_protocol":
      return new ConnectionRefusedError(
        "invalid_request",
        query.protocol === "tcp"
          ? `${label} is an HTTP tunnel, not a TCP tunnel`
          : `${label} is a TCP tunnel, not an HTTP tunnel`,
        "wrong_protocol",
      );
    case "unknown_relay":
    case "no_relay":
      return new ConnectionRefusedError("internal", "no relay is available for TCP tunnels");
    case "exhausted":
      return new ConnectionRefusedError("internal", "the relay has no free TCP port");
    case "share_used":
      return new ConnectionRefusedError(
        "quota_exceeded",
        "the organization already has its share of the relay's ports",
        "port_limit",
      );
    case "domain_not_found":
    case "domain_not_verified":
    case "domain_in_use":
    case "domain_not_bound":
      return toDomainRefusal(refusal, query.host ?? "");
    case "plan_lacks_password":
      return planLacksPassword(config);
    case "served_by_another":
      return new ConnectionRefusedError(
        "duplicate_name",
        `an agent with another token serves ${label}`,
      );
    case "quota_exceeded":
      return new ConnectionRefusedError("quota_exceeded", "the token's tunnel quota is used up");
  }
}

/** The custom domain that the agent asks for, if it still leads to the tunnel; otherwise the tunnel's own host. */
async function findPublicHost(
  { SERVICE_DOMAIN }: Config,
  db: Database,
  { id, orgId, subdomain }: RegisteredTunnel["tunnel"],
  { host }: AgentRequest["query"],
): Promise<string> {
  const ownHost = `${subdomain}.${SERVICE_DOMAIN}`;
  if (host === undefined || host === ownHost) return ownHost;
  return (await isBoundTo(db, orgId, host, id)) ? host : ownHost;
}

function toAdmission(
  config: Config,
  token: TokenPayload,
  { tunnel, plan, ttlLimit, host }: RegisteredTunnel & { host: string },
  { address: remoteIp, query }: AgentRequest,
): AgentAdmission {
  const { id, orgId, name, subdomain, expiresAt, settingsVersion: version } = tunnel;
  const { relayHost, relayId, publicPort } = tunnel;
  const hasPort = relayHost !== null && relayId !== null && publicPort !== null;
  return {
    tunnelId: id,
    orgId,
    name,
    subdomain,
    ...(isHttpProtocol(query.protocol)
      ? { url: publicUrl(config, host) }
      : hasPort
        ? { url: tcpUrl(relayHost, publicPort), relay: { id: relayId, port: publicPort } }
        : { url: privateTcpUrl(host), relay: null }),
    tokenNonce: toHex(token.nonce),
    tokenExpiresAtMs: token.expiresAtSeconds * 1000,
    endsAtMs: expiresAt?.getTime() ?? null,
    ...(ttlLimit !== undefined && { ttlLimit }),
    bandwidthLimitMbps: token.bandwidthLimitMbps,
    remoteIp,
    retention: { version, days: PLAN_LIMITS[plan].inspector_retention_days },
  };
}
