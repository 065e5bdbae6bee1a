/** Reads captured requests from the objects of tunnels, and merges those of several tunnels. */
import type {
  CaptureDetail,
  CaptureFilter,
  CaptureSummary,
} from "../../../protocol/schemas/inspector/captures.ts";
import type { InspectorQuery } from "../../../protocol/schemas/inspector/inspector.ts";
import { publicUrl } from "../../config/config.ts";
import { ApiError } from "../../errors.ts";
import { tunnelObject } from "../../objects.ts";
import {
  findInspectedTunnel,
  listInspectedTunnels,
  listTunnelsOfCapture,
  type InspectedTunnel,
} from "../../store/inspector/inspector.ts";
import { getOrgId } from "../guard.ts";
import type { TunnelBreakdown } from "../metrics/breakdown.ts";
import { notFound, type ApiContext } from "../route.ts";

/** Captured requests that a breakdown examines of each tunnel: some 25 ms of its object's time. */
const BREAKDOWN_MAX_REQUESTS = 5_000;

export interface FoundCapture {
  tunnel: InspectedTunnel;
  event: CaptureDetail;
}

/** @throws ApiError when the organization has no request with this id. */
export async function findCapture(c: ApiContext, captureId: string): Promise<FoundCapture> {
  const id = captureId.toLowerCase();
  for (const tunnel of await listTunnelsOfCapture(c.var.db, c.var.principal.orgId, id)) {
    const event = await readCapture(c, tunnel, id);
    if (event) return { tunnel, event };
  }
  throw notFound("captured request");
}

/** @returns null when it is not stored any more. */
export function readCapture(
  { env }: ApiContext,
  tunnel: InspectedTunnel,
  id: string,
): Promise<CaptureDetail | null> {
  return unavailableOnFailure(tunnelObject(env, tunnel.id).getCapture(id));
}

export interface ListedCapture {
  tunnel: InspectedTunnel;
  summary: CaptureSummary;
}

/** Newest first. @throws ApiError when the query names a tunnel of another organization, or none. */
export async function listCaptures(c: ApiContext, query: InspectorQuery): Promise<ListedCapture[]> {
  const filter = toFilter(query);
  const tunnels = await listRequestedTunnels(c, query.tunnel_id);
  const lists = await Promise.all(
    tunnels.map(async (tunnel) => {
      const summaries = await unavailableOnFailure(
        tunnelObject(c.env, tunnel.id).listCaptures(filter),
      );
      return summaries.map((summary) => ({ tunnel, summary }));
    }),
  );
  return sortNewestFirst(lists.flat()).slice(0, filter.limit);
}

/** @throws ApiError when the organization has no such tunnel, or an object can't be reached. */
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
      return { tunnelId: id, captured: await unavailableOnFailure(counted) };
    }),
  );
}

async function listRequestedTunnels(
  c: ApiContext,
  id: string | undefined,
): Promise<InspectedTunnel[]> {
  const orgId = getOrgId(c);
  if (id === undefined) return listInspectedTunnels(c.var.db, orgId);
  const tunnel = await findInspectedTunnel(c.var.db, orgId, id);
  if (!tunnel) throw notFound("tunnel");
  return [tunnel];
}

/** Ids start with the time and are unique, so the order is the same for all tunnels and all pages. */
function sortNewestFirst(listed: ListedCapture[]): ListedCapture[] {
  return listed.sort((one, other) => (one.summary.id < other.summary.id ? 1 : -1));
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
export function getOrigin({ var: { config } }: ApiContext, { subdomain }: InspectedTunnel): string {
  return publicUrl(config, `${subdomain}.${config.SERVICE_DOMAIN}`);
}

/** An object that restarts aborts calls; the caller can try again. */
export async function unavailableOnFailure<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call;
  } catch (cause) {
    throw new ApiError("unavailable", "The tunnel cannot be reached right now. Try again.", {
      cause,
    });
  }
}
