/**
 * /tunnels. A tunnel has a row and an object: the row assigns its name to an organization and says who may serve it,
 * the object knows which agent does.
 */
import { z } from "zod";
import {
  RANDOM_NAME_MAX_TRIES,
  TUNNEL_REFRESH_MAX_ROWS,
  TUNNEL_STATUS_FRESH_MS,
} from "../../limits.ts";
import {
  DEFAULT_PROJECT_SLUG,
  describeLongSlug,
  findLabelError,
  toLabel,
  generateRandomName,
} from "../../../protocol/names.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import {
  CreateTunnel,
  isHttpProtocol,
  TunnelStatusResult,
  Tunnel,
} from "../../../protocol/schemas/tunnels/tunnels.ts";
import { privateTcpUrl, publicUrl, tcpUrl, type Config } from "../../config/config.ts";
import { ApiError } from "../../errors.ts";
import { refreshTunnelStatuses } from "../../store/tunnels/object-sync.ts";
import { isPortRefusal, type PortRefusal } from "../../store/networks/relay-ports.ts";
import { deleteTunnel, setStopped, type StopResult } from "../../store/tunnels/lifecycle.ts";
import {
  createTunnel,
  listTunnels,
  listTunnelsById,
  type ListedTunnel,
} from "../../store/tunnels/tunnels.ts";
import { requireUnreservedLabel, subdomainTaken } from "../domains/taken-names.ts";
import { allow, allowReadOrAgent, allowOrAgent, readAsCaller } from "../guard.ts";
import {
  createRouter,
  getCallerActor,
  getMemberActor,
  invalidField,
  jsonResponse,
  notFound,
  organizationNotApproved,
  portShareUsed,
  route,
  type ApiContext,
} from "../route.ts";
import { describeOutsideRanges } from "./refusals.ts";
import { tunnelExpired } from "./setting-changes.ts";

export const tunnels = createRouter();

tunnels.openapi(
  route({
    operationId: "listTunnels",
    method: "get",
    path: "/tunnels",
    summary: "List tunnels",
    guard: allowReadOrAgent("tunnels:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("The tunnels, newest first.", z.array(Tunnel)) },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listTunnels(db, orgId, page));
    const confirmed = await confirmStatuses(c, rows);
    return c.json(
      confirmed.map((row) => toTunnel(c.var.config, row)),
      200,
    );
  },
);

tunnels.openapi(
  route({
    operationId: "createTunnel",
    method: "post",
    path: "/tunnels",
    summary: "Create a tunnel for an agent that connects later",
    guard: allow("tunnels:write"),
    body: CreateTunnel,
    example: { localPort: 3000, protocol: "http", ttlSeconds: 3600 },
    responses: { 201: jsonResponse("Created, with the status `inactive`.", Tunnel) },
    failures: ["not_found", "duplicate_name", "conflict", "unavailable"],
  }),
  async (c) => {
    const row = await createWithFreeName(c, c.req.valid("json"));
    return c.json(toTunnel(c.var.config, row), 201);
  },
);

tunnels.openapi(
  route({
    operationId: "deleteTunnel",
    method: "delete",
    path: "/tunnels/{id}",
    summary: "Delete a tunnel",
    guard: allowOrAgent("tunnels:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "The tunnel is deleted and its agent is disconnected. Other organizations can use its subdomain after a day.",
        Ok,
      ),
    },
  }),
  async (c) => {
    const deleted = await deleteTunnel(c.var.db, getCallerActor(c), c.req.valid("param").id);
    if (!deleted) throw notFound("tunnel");
    return c.json({ ok: true as const }, 200);
  },
);

tunnels.openapi(
  route({
    operationId: "startTunnel",
    method: "post",
    path: "/tunnels/{id}/start",
    summary: "Start a stopped tunnel",
    guard: allowOrAgent("tunnels:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "Agents are accepted again. One that is running reconnects within seconds.",
        TunnelStatusResult,
      ),
    },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const stopped = await setStopped(c.var.db, getCallerActor(c), id, false);
    return c.json({ id, ...toStatusResult(stopped) }, 200);
  },
);

tunnels.openapi(
  route({
    operationId: "stopTunnel",
    method: "post",
    path: "/tunnels/{id}/stop",
    summary: "Stop a tunnel",
    guard: allowOrAgent("tunnels:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "Its agent is disconnected, and no agent is accepted until the tunnel is started.",
        TunnelStatusResult,
      ),
    },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const stopped = await setStopped(c.var.db, getCallerActor(c), id, true);
    return c.json({ id, ...toStatusResult(stopped) }, 200);
  },
);

function toStatusResult(stopped: StopResult): Omit<z.output<typeof TunnelStatusResult>, "id"> {
  switch (stopped) {
    case "not_found":
      throw notFound("tunnel");
    case "expired":
      throw tunnelExpired();
    default:
      return { status: stopped.status, stoppedAt: stopped.stoppedAt?.toISOString() ?? null };
  }
}

async function createWithFreeName(c: ApiContext, request: CreateTunnel): Promise<ListedTunnel> {
  const { subdomain, ...fields } = request;
  const projectSlug = request.projectSlug ?? DEFAULT_PROJECT_SLUG;
  for (let tries = 1; ; tries++) {
    const name = subdomain ?? generateRandomName(projectSlug);
    if (name === null) throw invalidField("projectSlug", describeLongSlug(projectSlug));
    const label = toLabel(name, projectSlug);
    const labelError = findLabelError(label);
    if (labelError !== null) throw invalidField("subdomain", labelError);
    requireUnreservedLabel(label);

    const tunnel = { ...fields, name, label, projectSlug };
    const row = await createTunnel(c.var.db, getMemberActor(c), tunnel);
    if (row === "project_not_found") throw notFound("project", "slug");
    if (isPortRefusal(row)) throw toPortError(row, request);
    if (!("freeAt" in row)) return row;
    if (subdomain !== undefined || tries === RANDOM_NAME_MAX_TRIES)
      throw subdomainTaken(label, row);
  }
}

function toPortError(refusal: PortRefusal, { publicPort, relayId }: CreateTunnel): ApiError {
  if (typeof refusal === "object")
    return invalidField("publicPort", describeOutsideRanges(refusal));
  switch (refusal) {
    case "unknown_relay":
      return invalidField("relayId", `names an unknown relay: ${relayId} has never connected`);
    case "port_taken":
      return new ApiError("duplicate_name", `The port ${publicPort} is taken.`);
    case "no_relay":
      return new ApiError(
        "unavailable",
        "No relay is available for TCP tunnels. The operator of this server must start one.",
      );
    case "exhausted":
      return new ApiError(
        "unavailable",
        "The relay has no free TCP port. Send another relayId, or delete a TCP tunnel.",
      );
    case "share_used":
      return portShareUsed();
    case "organization_pending":
    case "organization_rejected":
      return organizationNotApproved(refusal);
  }
}

/** A row with the status "connected" that was not updated recently may be stale: its object confirms it. */
async function confirmStatuses(c: ApiContext, rows: ListedTunnel[]): Promise<ListedTunnel[]> {
  const freshSince = Date.now() - TUNNEL_STATUS_FRESH_MS;
  const isStale = ({ agentConnected, lastSeenAt }: ListedTunnel) =>
    agentConnected && (lastSeenAt === null || lastSeenAt.getTime() < freshSince);
  const staleIds = rows
    .filter(isStale)
    .slice(0, TUNNEL_REFRESH_MAX_ROWS)
    .map(({ id }) => id);
  if (staleIds.length === 0) return rows;

  await refreshTunnelStatuses(c.env, c.var.db, staleIds);
  const confirmed = await listTunnelsById(c.var.db, staleIds);
  const rowById = new Map(confirmed.map((row) => [row.id, row]));
  return rows.map((row) => ({ ...row, ...rowById.get(row.id) }));
}

/** A private TCP tunnel has no port. One that was created before relays existed has none until its agent connects. */
function getPublicUrl(
  config: Config,
  { subdomain, protocol, publicPort }: Pick<ListedTunnel, "subdomain" | "protocol" | "publicPort">,
  relayHost: string | null,
): string {
  const host = `${subdomain}.${config.SERVICE_DOMAIN}`;
  if (isHttpProtocol(protocol)) return publicUrl(config, host);
  return relayHost === null || publicPort === null
    ? privateTcpUrl(host)
    : tcpUrl(relayHost, publicPort);
}

function toTunnel(config: Config, { relayHost, ...row }: ListedTunnel): Tunnel {
  return {
    ...row,
    publicUrl: getPublicUrl(config, row, relayHost),
    createdAt: row.createdAt.toISOString(),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    stoppedAt: row.stoppedAt?.toISOString() ?? null,
    lastSeenAt: row.lastSeenAt?.toISOString() ?? null,
  };
}
