/** Captured requests are with the tunnels that they were made to; rows say whose those are. */
import { and, desc, eq, isNull, sql } from "drizzle-orm";
import { captureKey } from "../../../protocol/capture-id.ts";
import { prepared, type Database } from "../database.ts";
import { holdsRole, type MemberActor } from "../locks.ts";
import { tunnels } from "../tables/tunnels.ts";

/** The newest of an organization are looked for at as many of its tunnels: those that were served last. */
const INSPECTOR_MAX_TUNNELS = 100;

export interface InspectedTunnel {
  id: string;
  subdomain: string;
}

const COLUMNS = { id: tunnels.id, subdomain: tunnels.subdomain };
const orgId = sql.placeholder("orgId");

const servedLast = prepared((read) =>
  read
    .select(COLUMNS)
    .from(tunnels)
    .where(and(eq(tunnels.orgId, orgId), isNull(tunnels.deletedAt)))
    .orderBy(desc(tunnels.agentConnected), sql`${tunnels.lastSeenAt} desc nulls last`)
    .limit(INSPECTOR_MAX_TUNNELS)
    .prepare("list_inspected_tunnels"),
);

/** Those that are served now, then those that were served last. */
export function listInspectedTunnels(db: Database, org: string): Promise<InspectedTunnel[]> {
  return servedLast(db).execute({ orgId: org });
}

const byId = prepared((read) =>
  read
    .select(COLUMNS)
    .from(tunnels)
    .where(
      and(
        eq(tunnels.orgId, orgId),
        eq(tunnels.id, sql.placeholder("id")),
        isNull(tunnels.deletedAt),
      ),
    )
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

const byKey = prepared((read) =>
  read
    .select(COLUMNS)
    .from(tunnels)
    .where(
      and(
        eq(tunnels.orgId, orgId),
        sql`right(${tunnels.id}::text, 12) = ${sql.placeholder("key")}`,
        isNull(tunnels.deletedAt),
      ),
    )
    .prepare("list_tunnels_of_capture"),
);

/** Which tunnels a captured request can be of: one, as good as always. */
export function listTunnelsOf(
  db: Database,
  org: string,
  captureId: string,
): Promise<InspectedTunnel[]> {
  return byKey(db).execute({ orgId: org, key: captureKey(captureId) });
}

/** `unheard`: it is decided, and the tunnel's object will hear of it. */
export type Cleared = "cleared" | "unheard" | "not_found" | "role_changed";

/** Of everything that came so far. */
export async function clearCaptures(
  db: Database,
  actor: MemberActor,
  tunnelId: string,
): Promise<Cleared> {
  const { result, arrived } = await db.changeAndTell(async (change) => {
    if (!(await holdsRole(change.tx, actor))) return "role_changed";
    const [row] = await change.tx
      .select({ id: tunnels.id })
      .from(tunnels)
      .where(
        and(eq(tunnels.orgId, actor.orgId), eq(tunnels.id, tunnelId), isNull(tunnels.deletedAt)),
      )
      .for("share");
    if (!row) return "not_found";
    const about = { resourceType: "tunnel", resourceId: tunnelId } as const;
    change.audit({ ...whoOf(actor), ...about, action: "tunnel_captures_cleared" });
    const payload = { tunnelId, untilMs: Date.now() };
    change.tell({ kind: "tunnel_captures_cleared", payload });
    return "cleared";
  });
  return result === "cleared" && !arrived ? "unheard" : result;
}

/** Written before it is sent: what reaches a local server is in the log, whatever comes of it. */
export function noteReplay(
  db: Database,
  actor: MemberActor,
  tunnelId: string,
  captureId: string,
): Promise<"noted" | "role_changed"> {
  return db.change(async (change) => {
    if (!(await holdsRole(change.tx, actor))) return "role_changed";
    const about = { resourceType: "tunnel", resourceId: tunnelId } as const;
    const metadata = { capture: captureId };
    change.audit({ ...whoOf(actor), ...about, action: "tunnel_request_replayed", metadata });
    return "noted";
  });
}

function whoOf({ orgId, userId, ip }: MemberActor) {
  return { orgId, userId, ip };
}
