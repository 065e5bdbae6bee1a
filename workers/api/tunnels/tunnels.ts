/**
 * /tunnels. A tunnel is a name that an organization holds (a row) and whoever serves it (an object): the row
 * says who may, the object says who does.
 */
import { z } from "zod";
import {
  RANDOM_NAME_MAX_TRIES,
  TUNNEL_CONFIRM_MAX_ROWS,
  TUNNEL_STATUS_FRESH_MS,
} from "../../limits.ts";
import {
  DEFAULT_PROJECT_SLUG,
  isReservedLabel,
  findLabelError,
  toLabel,
  generateRandomName,
} from "../../../protocol/names.ts";
import { Id, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import {
  CreateTunnel,
  TunnelStatusResult,
  Tunnel,
} from "../../../protocol/schemas/tunnels/tunnels.ts";
import { publicUrl, tcpUrl, type Config } from "../../config/config.ts";
import { ApiError } from "../../errors.ts";
import { confirmTunnel } from "../../store/tunnels/live-tunnels.ts";
import type { PortRefusal } from "../../store/networks/relay-ports.ts";
import type { WantedPort } from "../../store/tunnels/tcp-ports.ts";
import {
  createTunnel,
  deleteTunnel,
  findTunnelNews,
  listTunnels,
  setStopped,
  type ListedTunnel,
  type Stopped,
} from "../../store/tunnels/tunnels.ts";
import { allow } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  invalidField,
  createRouter,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";

export const tunnels = createRouter();

tunnels.openapi(
  route({
    method: "get",
    path: "/tunnels",
    summary: "List tunnels",
    guard: allow("tunnels:read"),
    query: PageQuery,
    responses: { 200: jsonResponse("Newest first.", z.array(Tunnel)) },
  }),
  async (c) => {
    const rows = await listTunnels(c.var.db, c.var.principal.orgId, c.req.valid("query"));
    const confirmed = await withFreshStatus(c, rows);
    return c.json(
      confirmed.map((row) => toTunnel(c.var.config, row)),
      200,
    );
  },
);

tunnels.openapi(
  route({
    method: "post",
    path: "/tunnels",
    summary: "Reserve a tunnel that an agent connects to later",
    guard: allow("tunnels:write"),
    body: CreateTunnel,
    responses: { 201: jsonResponse("Made; its status is `inactive`.", Tunnel) },
    failures: ["not_found", "duplicate_name", "unavailable"],
  }),
  async (c) => {
    const row = await createWithFreeName(c, c.req.valid("json"));
    return c.json(toTunnel(c.var.config, row), 201);
  },
);

tunnels.openapi(
  route({
    method: "delete",
    path: "/tunnels/{id}",
    summary: "Delete a tunnel",
    guard: allow("tunnels:write"),
    params: Id,
    responses: { 200: jsonResponse("Its name is free, its agent is told.", Ok) },
  }),
  async (c) => {
    const deleted = await deleteTunnel(c.var.db, getMemberActor(c), c.req.valid("param").id);
    if (!deleted) throw notFound("such tunnel");
    return c.json({ ok: true as const }, 200);
  },
);

tunnels.openapi(
  route({
    method: "post",
    path: "/tunnels/{id}/start",
    summary: "Let agents in again that a stop keeps out",
    guard: allow("tunnels:write"),
    params: Id,
    responses: {
      200: jsonResponse(
        "Its agent comes back within seconds, if it is running.",
        TunnelStatusResult,
      ),
    },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const stopped = await setStopped(c.var.db, getMemberActor(c), id, false);
    return c.json({ id, status: toStatus(stopped) }, 200);
  },
);

tunnels.openapi(
  route({
    method: "post",
    path: "/tunnels/{id}/stop",
    summary: "Disconnect a tunnel's agent, and keep agents out until it is started",
    guard: allow("tunnels:write"),
    params: Id,
    responses: { 200: jsonResponse("It is offline, its agent is told.", TunnelStatusResult) },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const stopped = await setStopped(c.var.db, getMemberActor(c), id, true);
    return c.json({ id, status: toStatus(stopped) }, 200);
  },
);

function toStatus(stopped: Stopped): Tunnel["status"] {
  switch (stopped) {
    case "not_found":
      throw notFound("such tunnel");
    case "expired":
      throw new ApiError("expired", "The tunnel's time is over. Make a new one.");
    default:
      return stopped.status;
  }
}

async function createWithFreeName(
  c: ApiContext,
  asked: z.output<typeof CreateTunnel>,
): Promise<ListedTunnel> {
  const { subdomain, localPort, protocol, ttlSeconds, relayId, publicPort } = asked;
  const wantedPort = { relayId, port: publicPort };
  const projectSlug = asked.projectSlug ?? DEFAULT_PROJECT_SLUG;
  for (let tries = 1; ; tries++) {
    const name = subdomain ?? generateRandomName();
    const label = toLabel(name, projectSlug);
    const fault = findLabelError(label);
    if (fault !== null) throw invalidField("subdomain", fault);
    const taken = new ApiError("duplicate_name", `${label} is taken.`);
    if (isReservedLabel(label)) throw taken;

    const made = { name, label, projectSlug, protocol, localPort, ttlSeconds, wantedPort };
    const row = await createTunnel(c.var.db, getMemberActor(c), made);
    if (row === "project_not_found") throw notFound("such project");
    if (typeof row === "object") {
      const nothingYet = { authEnabled: false, edgeAuthEnabled: false, policyActions: 0 };
      return { ...row, projectSlug, ...nothingYet, customDomains: [] };
    }
    if (row !== "duplicate_name") throw toPortError(row, wantedPort);
    if (subdomain !== undefined || tries === RANDOM_NAME_MAX_TRIES) throw taken;
  }
}

function toPortError(refusal: PortRefusal, { port, relayId }: WantedPort): ApiError {
  switch (refusal) {
    case "unknown_relay":
      return invalidField("relayId", `names no relay: ${relayId} has never connected`);
    case "port_taken":
      return new ApiError("duplicate_name", `Port ${port} is taken.`);
    case "port_outside_range":
      return invalidField("publicPort", "is not among the ports that the relay hands out");
    case "no_relay":
      return new ApiError("unavailable", "No relay has connected, so there are no TCP ports.");
    case "exhausted":
      return new ApiError("unavailable", "Every TCP port of the relay is reserved.");
  }
}

/** A row that says "connected" and has not been heard of for a while may be wrong: its object is asked. */
async function withFreshStatus(c: ApiContext, rows: ListedTunnel[]): Promise<ListedTunnel[]> {
  const freshSince = Date.now() - TUNNEL_STATUS_FRESH_MS;
  const isOld = ({ agentConnected, lastSeenAt }: ListedTunnel) =>
    agentConnected && (lastSeenAt === null || lastSeenAt.getTime() < freshSince);
  const old = rows
    .filter(isOld)
    .slice(0, TUNNEL_CONFIRM_MAX_ROWS)
    .map(({ id }) => id);
  if (old.length === 0) return rows;

  await Promise.all(old.map((id) => confirmTunnel(c.env, c.var.db, id)));
  const news = new Map((await findTunnelNews(c.var.db, old)).map((row) => [row.id, row]));
  return rows.map((row) => ({ ...row, ...news.get(row.id) }));
}

/** A tunnel of protocol `tcp` that was made before there were relays has no port until its agent connects. */
function getPublicUrl(config: Config, row: ListedTunnel): string {
  const { subdomain, protocol, publicPort, relayHost } = row;
  const host = `${subdomain}.${config.SERVICE_DOMAIN}`;
  if (protocol !== "tcp") return publicUrl(config, host);
  return relayHost === null || publicPort === null
    ? `tcp://${host}`
    : tcpUrl(relayHost, publicPort);
}

function toTunnel(config: Config, row: ListedTunnel): Tunnel {
  const { id, name, subdomain, projectSlug, status, protocol, localPort, agentConnected } = row;
  const { authEnabled, edgeAuthEnabled, maintenance, policyActions, customDomains } = row;
  const { bytesIn, bytesOut, totalRequests } = row;
  return {
    id,
    name,
    subdomain,
    projectSlug,
    publicUrl: getPublicUrl(config, row),
    status,
    protocol,
    localPort,
    publicPort: row.publicPort,
    allowedCidrs: row.allowedCidrs,
    agentConnected,
    authEnabled,
    edgeAuthEnabled,
    maintenance,
    policyActions,
    customDomains,
    bytesIn,
    bytesOut,
    totalRequests,
    createdAt: row.createdAt.toISOString(),
    expiresAt: row.expiresAt?.toISOString() ?? null,
    lastSeenAt: row.lastSeenAt?.toISOString() ?? null,
  };
}
