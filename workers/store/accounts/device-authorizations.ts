/** Requests of the device flow: machines that wait for a user's approval. */
import { and, eq, gt, isNull, or, sql, type SQL } from "drizzle-orm";
import { DEVICE_CODE_MAX_MS } from "../../limits.ts";
import { fromNow } from "../clock.ts";
import type { Database } from "../database.ts";
import type { MemberActor } from "../locks.ts";
import { deviceCodes } from "../tables/tokens.ts";
import { findToken, insertToken, type NewToken, type TokenRow } from "../tokens/tokens.ts";

/** A request is found by the machine's secret or by the code that the user enters. */
export interface DeviceSelector {
  deviceCodeHash: string;
  userCode: string | null;
}

/** @returns false when the user code is in use. */
export async function insertDeviceAuthorization(
  { query }: Database,
  device: { deviceCodeHash: string; userCode: string; label: string; ip: string | null },
): Promise<boolean> {
  const rows = await query
    .insert(deviceCodes)
    .values({ ...device, expiresAt: fromNow(DEVICE_CODE_MAX_MS) })
    .onConflictDoNothing()
    .returning({ id: deviceCodes.id });
  return rows.length > 0;
}

interface PendingAuthorization {
  label: string;
  userCode: string;
  /** The machine's address; null when it is unknown. */
  ip: string | null;
  createdAt: Date;
}

/** Finds a request that can still be approved or denied. */
export async function findPendingAuthorization(
  { query }: Database,
  device: DeviceSelector,
): Promise<PendingAuthorization | null> {
  const { label, userCode, ip, createdAt } = deviceCodes;
  const [row] = await query
    .select({ label, userCode, ip, createdAt })
    .from(deviceCodes)
    .where(isUndecided(device));
  return row ?? null;
}

function isUndecided({ deviceCodeHash, userCode }: DeviceSelector) {
  return and(
    or(
      eq(deviceCodes.deviceCodeHash, deviceCodeHash),
      userCode === null ? undefined : eq(deviceCodes.userCode, userCode),
    ),
    isNull(deviceCodes.approvedAt),
    isNull(deviceCodes.deniedAt),
    gt(deviceCodes.expiresAt, sql`now()`),
  );
}

/** Mints the machine's token. @returns "not_found" when no such request is waiting. */
export function approveDeviceAuthorization(
  db: Database,
  actor: MemberActor,
  device: DeviceSelector,
  toToken: (label: string) => NewToken,
): Promise<{ token: TokenRow; deviceId: string } | "not_found"> {
  return db.transaction(async (change) => {
    const [waiting] = await change.tx
      .update(deviceCodes)
      .set({ approvedAt: sql`now()` })
      .where(isUndecided(device))
      .returning({ id: deviceCodes.id, label: deviceCodes.label });
    if (!waiting) return "not_found";
    const token = await insertToken(change, actor, toToken(waiting.label));
    await change.tx
      .update(deviceCodes)
      .set({ tokenId: token.id })
      .where(eq(deviceCodes.id, waiting.id));
    change.audit(actor, "device_approved", waiting.id, { label: waiting.label });
    return { token, deviceId: waiting.id };
  });
}

/** It can no longer be approved. @returns its id, or null when no such request is waiting. */
export function denyDeviceAuthorization(
  db: Database,
  actor: MemberActor,
  device: DeviceSelector,
): Promise<string | null> {
  return db.transaction(async ({ tx, audit }) => {
    const [denied] = await tx
      .update(deviceCodes)
      .set({ deniedAt: sql`now()` })
      .where(isUndecided(device))
      .returning({ id: deviceCodes.id, label: deviceCodes.label });
    if (!denied) return null;
    audit(actor, "device_denied", denied.id, { label: denied.label });
    return denied.id;
  });
}

export type PollResult =
  /** `sincePollMs`: how long ago the poll before was. null: this one is the first. */
  | { state: "waiting"; deviceId: string; sincePollMs: number | null }
  | { state: "denied" | "ended" }
  | { state: "approved"; token: TokenRow; label: string };

/** Records the poll and, after the approval, returns the token: to a single poll, once. */
export async function pollDeviceAuthorization(
  db: Database,
  deviceCodeHash: string,
): Promise<PollResult> {
  const before = db.query
    .$with("before")
    .as(
      db.query
        .select({ id: deviceCodes.id, lastPolledAt: deviceCodes.lastPolledAt })
        .from(deviceCodes)
        .where(eq(deviceCodes.deviceCodeHash, deviceCodeHash))
        .for("update"),
    );
  const since = sql`extract(epoch from now() - ${before.lastPolledAt}) * 1000`;
  const sincePollMs: SQL<number | null> = since.mapWith(Number);
  const [device] = await db.query
    .with(before)
    .update(deviceCodes)
    .set({ lastPolledAt: sql`now()` })
    .from(before)
    .where(eq(deviceCodes.id, before.id))
    .returning({
      id: deviceCodes.id,
      tokenId: deviceCodes.tokenId,
      deniedAt: deviceCodes.deniedAt,
      isExpired: sql<boolean>`${deviceCodes.expiresAt} <= now()`,
      sincePollMs,
    });
  if (!device || device.isExpired) return { state: "ended" };
  if (device.deniedAt !== null) return { state: "denied" };
  if (device.tokenId === null) {
    return { state: "waiting", deviceId: device.id, sincePollMs: device.sincePollMs };
  }

  const [collected] = await db.query
    .update(deviceCodes)
    .set({ collectedAt: sql`now()` })
    .where(and(eq(deviceCodes.id, device.id), isNull(deviceCodes.collectedAt)))
    .returning({ label: deviceCodes.label });
  if (!collected) return { state: "ended" };
  const token = await findToken(db, device.tokenId);
  // The user who approved it may have revoked it, or may have been removed from the organization.
  if (!token || token.revokedAt) return { state: "ended" };
  return { state: "approved", token, label: collected.label };
}
