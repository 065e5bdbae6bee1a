/**
 * What of a tunnel's requests is kept. The row says what its owner wants, the organization's plan for how
 * long; the tunnel's object is told both in the change's outbox, with the tunnel's next version.
 */
import { and, eq, ne, sql } from "drizzle-orm";
import { CaptureSettings } from "../../../protocol/schemas/inspector/captures.ts";
import { PLAN_TERMS } from "../billing/plans.ts";
import type { Change, Database } from "../database.ts";
import { type GateChange } from "../access/gates.ts";
import type { MemberActor } from "../locks.ts";
import { organizations } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";
import { liveTunnel, liveTunnels } from "../tunnels/live-tunnels.ts";

const DEFAULT_SETTINGS = CaptureSettings.parse({});

/** @returns undefined when there is no such tunnel. */
export async function findCaptureSettings(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<CaptureSettings | undefined> {
  const [row] = await query
    .select({ capturing: tunnels.captureSettings })
    .from(tunnels)
    .where(liveTunnel(orgId, id));
  return row && (row.capturing ?? DEFAULT_SETTINGS);
}

export async function setCaptureSettings(
  db: Database,
  actor: MemberActor,
  id: string,
  capturing: CaptureSettings,
): Promise<GateChange> {
  const { orgId } = actor;
  return db.changeAs(
    actor,
    async (change) => {
      const changed = await change.tx
        .update(tunnels)
        .set({ capturing, settingsVersion: NEXT_VERSION })
        .where(liveTunnel(orgId, id))
        .returning(CAPTURE_COLUMNS);
      if (changed.length === 0) return "not_found";
      if (changed[0]!.protocol === "tcp") return change.rollback("not_http");
      change.audit(actor, "tunnel_inspector_set", id);
      await enqueueCapturePolicies(change, orgId, changed);
      return "changed";
    },
    { requireDelivery: true },
  );
}

/** For a plan that the organization has from now on. */
export async function applyPlanToRetention(change: Change, orgId: string): Promise<void> {
  const changed = await change.tx
    .update(tunnels)
    .set({ settingsVersion: NEXT_VERSION })
    .where(and(liveTunnels(orgId), ne(tunnels.status, "expired")))
    .returning(CAPTURE_COLUMNS);
  if (changed.length > 0) await enqueueCapturePolicies(change, orgId, changed);
}

const NEXT_VERSION = sql`${tunnels.settingsVersion} + 1`;
const CAPTURE_COLUMNS = {
  id: tunnels.id,
  version: tunnels.settingsVersion,
  capturing: tunnels.captureSettings,
  protocol: tunnels.protocol,
};

interface CaptureRow {
  id: string;
  version: number;
  capturing: CaptureSettings | null;
}

async function enqueueCapturePolicies(
  { tx, enqueue }: Change,
  orgId: string,
  changed: CaptureRow[],
): Promise<void> {
  const [org] = await tx
    .select({ plan: organizations.plan })
    .from(organizations)
    .where(eq(organizations.id, orgId));
  const retentionDays = PLAN_TERMS[org!.plan].inspectorRetentionDays;
  for (const { id: tunnelId, version, capturing: wanted } of changed) {
    const capturing = { ...(wanted ?? DEFAULT_SETTINGS), version, retentionDays };
    enqueue({ kind: "tunnel_capturing", payload: { tunnelId, capturing } });
  }
}
