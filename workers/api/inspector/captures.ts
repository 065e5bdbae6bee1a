/** Reads captured requests from the objects of tunnels, and merges those of several tunnels. */
import type {
  CaptureDetail,
  CaptureFilter,
  CaptureSummary,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { InspectorQuery } from "../../../protocol/schemas/inspector/inspector.ts";
import { callObject } from "../../call-object.ts";
import { publicUrl } from "../../config/config.ts";
import { tunnelObject } from "../../objects.ts";
import {
  findInspectedTunnel,
  listInspectedTunnels,
  listTunnelsOfCapture,
  type InspectedTunnel,
} from "../../store/inspector/inspector.ts";
import { readAsCaller } from "../guard.ts";
import type { TunnelBreakdown } from "../metrics/breakdown.ts";
import { notFound, type ApiContext } from "../route.ts";
import { readNewestFirst, type ReadNewest } from "./newest-first.ts";

/** Captured requests that a breakdown examines of each tunnel: some 25 ms of its object's time, unless their paths are long. */
const BREAKDOWN_MAX_REQUESTS = 5_000;

export interface TunnelCapture {
  tunnel: InspectedTunnel;
  capture: CaptureDetail;
}

/** After `allowRead`. @throws ApiError when the organization has no request with this id. */
export async function findCapture(c: ApiContext, id: string): Promise<TunnelCapture> {
  const tunnels = await readAsCaller(c, (db, orgId) => listTunnelsOfCapture(db, orgId, id));
  for (const tunnel of tunnels) {
    const [capture] = await readCaptures(c, tunnel, [id]);
    if (capture) return { tunnel, capture };
  }
  throw notFound("captured request");
}

/** @returns the first of them, as many as fit into one answer but at least one; null for those that are no longer stored. */
export function readCaptures(
  { env }: ApiContext,
  tunnel: InspectedTunnel,
  ids: string[],
): Promise<(CaptureDetail | null)[]> {
  return callObject(tunnelObject(env, tunnel.id).getCaptures(ids));
}

export interface TunnelCaptureSummary {
  tunnel: InspectedTunnel;
  summary: CaptureSummary;
}

/** After `allowRead`: newest first. @throws ApiError when the query names a tunnel of another organization, or none. */
export async function listCaptures(
  c: ApiContext,
  query: InspectorQuery,
): Promise<TunnelCaptureSummary[]> {
  const filter = toFilter(query);
  const tunnels = await listRequestedTunnels(c, query.tunnel_id);
  const lists = tunnels.map((tunnel): ReadNewest<TunnelCaptureSummary> => {
    const object = tunnelObject(c.env, tunnel.id);
    return async (limit, after = filter.after) => {
      const summaries = await callObject(object.listCaptures({ ...filter, limit, after }));
      return summaries.map((summary) => ({ tunnel, summary }));
    };
  });
  return readNewestFirst(lists, filter.limit);
}

/** After `allowRead`. @throws ApiError when the organization has no such tunnel, or an object can't be reached. */
export async function breakDownCaptures(
  c: ApiContext,
  tunnelId: string | undefined,
  sinceMs: number,
): Promise<TunnelBreakdown[]> {
  const tunnels = await listRequestedTunnels(c, tunnelId);
  return Promise.all(
    tunnels.map(async ({ id }) => {
      const object = tunnelObject(c.env, id);
      const counted = object.breakDownCaptures(sinceMs, BREAKDOWN_MAX_REQUESTS);
      return { tunnelId: id, captured: await callObject(counted) };
    }),
  );
}

async function listRequestedTunnels(
  c: ApiContext,
  id: string | undefined,
): Promise<InspectedTunnel[]> {
  if (id === undefined) return readAsCaller(c, listInspectedTunnels);
  const tunnel = await readAsCaller(c, (db, orgId) => findInspectedTunnel(db, orgId, id));
  if (!tunnel) throw notFound("tunnel");
  return [tunnel];
}

function toFilter({ status, since, ...query }: InspectorQuery): CaptureFilter {
  return {
    limit: query.limit,
    after: query.after,
    method: query.method,
    path: query.path,
    // `4xx` becomes 4.
    status: status === undefined ? undefined : parseInt(status, 10),
    sinceMs: since === undefined ? undefined : Date.parse(since),
  };
}

/** The public origin of a tunnel. */
export function getTunnelOrigin(
  { var: { config } }: ApiContext,
  { subdomain }: InspectedTunnel,
): string {
  return publicUrl(config, `${subdomain}.${config.SERVICE_DOMAIN}`);
}
