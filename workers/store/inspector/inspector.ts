/** Captured requests are with the tunnels that they were made to; rows say whose those are. */
import { and, desc, sql } from "drizzle-orm";
import { getCaptureKey } from "../../../protocol/capture-id.ts";
import { prepared, type Database } from "../database.ts";
import type { MemberActor } from "../locks.ts";
import { tunnels } from "../tables/tunnels.ts";
import { liveTunnel, liveTunnels } from "../tunnels/live-tunnels.ts";

/** The newest of an organization are looked for at as many of its tunnels: those that were served last. */
const INSPECTOR_MAX_TUNNELS = 100;

export interface InspectedTunnel {
  id: string;
  subdomain: string;
}

const COLUMNS = { id: tunnels.id, subdomain: tunnels.subdomain };
const orgId = sql.placeholder("orgId");

const recentlyServed = prepared((query) =>
  query
    .select(COLUMNS)
    .from(tunnels)
    .where(liveTunnels(orgId))
    .orderBy(desc(tunnels.agentConnected), sql`${tunnels.lastSeenAt} desc nulls last`)
    .limit(INSPECTOR_MAX_TUNNELS)
    .prepare("list_inspected_tunnels"),
);

/** Those that are served now, then those that were served last. */
export function listInspectedTunnels(db: Database, org: string): Promise<InspectedTunnel[]> {
  return recentlyServed(db).execute({ orgId: org });
}

const byId = prepared((query) =>
  query
    .select(COLUMNS)
    .from(tunnels)
    .where(liveTunnel(orgId, sql.placeholder("id")))
    .prepare("find_inspected_tunnel"),
);

export async function findInspectedTunnel(
  db: Database,
  org: string,
  id: string,
): Promise<InspectedTunnel | null> {
  const [row] = await byId(db).execute({ orgId: org, id });
  return row ?? null;
}

const byKey = prepared((query) =>
  query
    .select(COLUMNS)
    .from(tunnels)
    .where(and(liveTunnels(orgId), sql`right(${tunnels.id}::text, 12) = ${sql.placeholder("key")}`))
    .prepare("list_tunnels_of_capture"),
);

/** Which tunnels a captured request can be of: one, as good as always. */
export function listTunnelsOfCapture(
  db: Database,
  org: string,
  captureId: string,
): Promise<InspectedTunnel[]> {
  return byKey(db).execute({ orgId: org, key: getCaptureKey(captureId) });
}

export type ClearResult = "cleared" | "not_found";

/** Of everything that came so far. */
export async function clearCaptures(
  db: Database,
  actor: MemberActor,
  tunnelId: string,
): Promise<ClearResult> {
  return db.changeAs(
    actor,
    async (change) => {
      const [row] = await change.tx
        .select({ id: tunnels.id })
        .from(tunnels)
        .where(liveTunnel(actor.orgId, tunnelId))
        .for("share");
      if (!row) return "not_found";
      change.audit(actor, "tunnel_captures_cleared", tunnelId);
      const payload = { tunnelId, untilMs: Date.now() };
      change.enqueue({ kind: "tunnel_captures_cleared", payload });
      return "cleared";
    },
    { requireDelivery: true },
  );
}

/** Written before it is sent: what reaches a local server is in the log, whatever comes of it. */
export function recordReplay(
  db: Database,
  actor: MemberActor,
  tunnelId: string,
  captureId: string,
): Promise<void> {
  return db.changeAs(actor, (change) => {
    change.audit(actor, "tunnel_request_replayed", tunnelId, { capture: captureId });
  });
}
