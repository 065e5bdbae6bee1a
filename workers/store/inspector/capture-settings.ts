/**
 * How a tunnel's requests are captured. The tunnel's row has its owner's settings, the organization's plan the retention;
 * the tunnel's object receives both together, with the tunnel's next settings version.
 */
import { eq } from "drizzle-orm";
import { CaptureSettings } from "../../../protocol/schemas/inspector/captures.ts";
import { PLAN_LIMITS } from "../../../protocol/schemas/accounts/entitlements.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { changeTunnelSettings, type SettingOutcome } from "../access/gates.ts";
import type { MemberActor } from "../locks.ts";
import { organizations } from "../tables/organizations.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import { isUndeletedTunnel, isUnendedTunnelIn } from "../tunnels/undeleted-tunnels.ts";
import { NEXT_SETTINGS_VERSION } from "../tunnels/settings-version.ts";

const DEFAULT_SETTINGS = CaptureSettings.parse({});

/** @returns undefined when there is no such tunnel. */
export async function findCaptureSettings(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<CaptureSettings | undefined> {
  const [row] = await query
    .select({ captureSettings: tunnels.captureSettings })
    .from(tunnels)
    .where(isUndeletedTunnel(orgId, id));
  return row && (row.captureSettings ?? DEFAULT_SETTINGS);
}

export function setCaptureSettings(
  db: Database,
  actor: MemberActor,
  id: string,
  captureSettings: CaptureSettings,
): Promise<SettingOutcome> {
  return changeTunnelSettings(db, actor, id, {
    columns: () => ({ captureSettings }),
    event: ["tunnel_inspector_set"],
    enqueueUpdate: (change, row) => enqueueCaptureSettings(change, row.orgId, [row]),
  });
}

/** After a change of the organization's plan. */
export async function applyPlanToRetention(change: UnitOfWork, orgId: string): Promise<void> {
  const rows = await change.tx
    .update(tunnels)
    .set({ settingsVersion: NEXT_SETTINGS_VERSION })
    .where(isUnendedTunnelIn(orgId))
    .returning();
  if (rows.length > 0) await enqueueCaptureSettings(change, orgId, rows);
}

async function enqueueCaptureSettings(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  rows: TunnelRow[],
): Promise<void> {
  const [org] = await tx
    .select({ plan: organizations.plan })
    .from(organizations)
    .where(eq(organizations.id, orgId));
  const retentionDays = PLAN_LIMITS[org!.plan].inspector_retention_days;
  for (const { id: tunnelId, settingsVersion: version, captureSettings } of rows) {
    const capturing = { ...(captureSettings ?? DEFAULT_SETTINGS), version, retentionDays };
    enqueue({ kind: "tunnel_capturing", payload: { tunnelId, capturing } });
  }
}
