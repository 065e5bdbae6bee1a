/** Captured requests are stored in tunnels' objects; the rows say which tunnels an organization may read them from. */
import { and, desc, sql } from "drizzle-orm";
import { getTunnelSuffixOfCapture } from "../../../protocol/captures/id.ts";
import { prepared, type Database } from "../database.ts";
import type { MemberActor } from "../locks.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isUndeletedTunnel, isUndeletedTunnelIn } from "../tunnels/undeleted-tunnels.ts";

/** A list of captures reads at most this many tunnels: those that were served most recently. */
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
    .where(isUndeletedTunnelIn(orgId))
    .orderBy(desc(tunnels.agentConnected), sql`${tunnels.lastSeenAt} desc nulls last`)
    .limit(INSPECTOR_MAX_TUNNELS)
    .prepare("list_inspected_tunnels"),
);

/** Connected tunnels first, then the most recently served ones. */
export function listInspectedTunnels(db: Database, org: string): Promise<InspectedTunnel[]> {
  return recentlyServed(db, { orgId: org });
}

const byId = prepared((query) =>
  query
    .select(COLUMNS)
    .from(tunnels)
    .where(isUndeletedTunnel(orgId, sql.placeholder("id")))
    .prepare("find_inspected_tunnel"),
);

export async function findInspectedTunnel(
  db: Database,
  org: string,
  id: string,
): Promise<InspectedTunnel | null> {
  const [row] = await byId(db, { orgId: org, id });
  return row ?? null;
}

const byKey = prepared((query) =>
  query
    .select(COLUMNS)
    .from(tunnels)
    .where(
      and(
        isUndeletedTunnelIn(orgId),
        sql`right(${tunnels.id}::text, 12) = ${sql.placeholder("key")}`,
      ),
    )
    .prepare("list_tunnels_of_capture"),
);

/** The tunnels that can have captured a request: its id ends like theirs. There is almost always only one. */
export function listTunnelsOfCapture(
  db: Database,
  org: string,
  captureId: string,
): Promise<InspectedTunnel[]> {
  return byKey(db, { orgId: org, key: getTunnelSuffixOfCapture(captureId) });
}

type ClearResult = "cleared" | "not_found";

/** Deletes the requests that a tunnel has captured so far. */
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
        .where(isUndeletedTunnel(actor.orgId, tunnelId))
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

/** Called before the request is sent, so that every replay that reaches a local server is in the audit log. */
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
