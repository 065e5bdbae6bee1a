/**
 * Webhook receivers' rows. Each change of a row has the next version; the receiver's object receives the new settings
 * through the outbox and applies the newest.
 */
import { isRowOfOrganization } from "../owned-rows.ts";
import { fromNow } from "../clock.ts";
import { and, asc, eq, gt, inArray, isNotNull, like, lte, not, or, sql } from "drizzle-orm";
import type { ReceiverSettings } from "../../../durable-objects/receiver/settings.ts";
import { EXPIRY_BATCH_ROWS, REENCRYPTION_BATCH_ROWS, RECEIVERS_PER_ORG_MAX } from "../../limits.ts";
import type { Validator } from "../../../protocol/schemas/webhooks.ts";
import type { Plan } from "../../../protocol/plans.ts";
import { PLAN_LIMITS } from "../../../protocol/schemas/accounts/entitlements.ts";
import type { OrganizationActor } from "../audit.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { lockOrganization, type MemberActor } from "../locks.ts";
import { organizations } from "../tables/organizations.ts";
import { webhookReceivers } from "../tables/webhooks.ts";
import { DAY_MS } from "../../../shared/time.ts";

export type ReceiverRow = typeof webhookReceivers.$inferSelect;

const list = preparedList(
  "list_webhook_receivers",
  inOrganization(webhookReceivers),
  (query, isOnPage) => query.select().from(webhookReceivers).where(isOnPage),
);

/** Newest first. */
export function listReceivers(db: Database, orgId: string, page: Page): Promise<ReceiverRow[]> {
  return list(db, orgId, page);
}

export async function findReceiver(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<ReceiverRow | null> {
  const [row] = await query
    .select()
    .from(webhookReceivers)
    .where(isRowOfOrganization(webhookReceivers, orgId, id));
  return row ?? null;
}

/** For requests of vendors, which name no organization. @returns those of the ids that receivers have. */
export async function findReceiverIds({ query }: Database, ids: string[]): Promise<string[]> {
  const rows = await query
    .select({ id: webhookReceivers.id })
    .from(webhookReceivers)
    .where(inArray(webhookReceivers.id, ids));
  return rows.map(({ id }) => id);
}

/** For requests of vendors, which name no organization. @returns null when there is no such receiver. */
export async function findReceiverSettings(
  { query }: Database,
  id: string,
): Promise<ReceiverSettings | null> {
  const [found] = await query
    .select({ receiver: webhookReceivers, plan: organizations.plan })
    .from(webhookReceivers)
    .innerJoin(organizations, eq(organizations.id, webhookReceivers.orgId))
    .where(eq(webhookReceivers.id, id));
  return found ? toReceiverSettings(found.receiver, found.plan) : null;
}

interface NewReceiver {
  name: string;
  validator: Validator;
  /** Encrypted. */
  secret: string;
}

/** The organization is locked, so that concurrent requests count each other's receivers. */
export function createReceiver(
  db: Database,
  actor: MemberActor,
  receiver: NewReceiver,
): Promise<ReceiverRow | "too_many"> {
  return db.transaction(async (change) => {
    const { tx, audit } = change;
    const org = await lockOrganization(tx, actor);
    const receivers = await tx.$count(webhookReceivers, eq(webhookReceivers.orgId, org.id));
    if (receivers >= RECEIVERS_PER_ORG_MAX) return "too_many";
    const [row] = await tx
      .insert(webhookReceivers)
      .values({ orgId: org.id, ...receiver })
      .returning();
    const { id, name, validator } = row!;
    audit(actor, "receiver_created", id, { name, validator });
    enqueueSettings(change, row!, org.plan);
    return row!;
  });
}

/** @param secret encrypted. The previous secret stays valid for `overlapMs`; an earlier one does not. */
export async function rotateReceiverSecret(
  db: Database,
  actor: MemberActor,
  { id, secret, overlapMs }: { id: string; secret: string; overlapMs: number },
): Promise<ReceiverRow | "not_found"> {
  return db.transaction(
    async (change) => {
      const org = await lockOrganization(change.tx, actor);
      const [row] = await change.tx
        .update(webhookReceivers)
        .set({
          secret,
          previousSecret: sql`${webhookReceivers.secret}`,
          previousSecretUntil: fromNow(overlapMs),
          version: sql`${webhookReceivers.version} + 1`,
        })
        .where(isRowOfOrganization(webhookReceivers, org.id, id))
        .returning();
      if (!row) return "not_found";
      change.audit(actor, "receiver_rotated", id, {
        name: row.name,
        previousSecretUntil: row.previousSecretUntil!.toISOString(),
      });
      enqueueSettings(change, row, org.plan);
      return row;
    },
    { requireDelivery: true },
  );
}

export function deleteReceiver(
  db: Database,
  actor: OrganizationActor,
  id: string,
): Promise<boolean> {
  return db.transaction(async (change) => (await deleteReceivers(change, actor, id)) > 0);
}

/** Deletes one or all of an organization's receivers with their deliveries. @returns how many. */
export async function deleteReceivers(
  { tx, audit, enqueue }: UnitOfWork,
  actor: OrganizationActor,
  id?: string,
): Promise<number> {
  const { orgId } = actor;
  const deleted = await tx
    .delete(webhookReceivers)
    .where(
      id === undefined
        ? eq(webhookReceivers.orgId, orgId)
        : isRowOfOrganization(webhookReceivers, orgId, id),
    )
    .returning({ id: webhookReceivers.id, name: webhookReceivers.name });
  for (const receiver of deleted) {
    audit(actor, "receiver_deleted", receiver.id, { name: receiver.name });
    enqueue({ kind: "receiver_retired", payload: { receiverId: receiver.id } });
  }
  return deleted.length;
}

/** After a change of the organization's plan, which decides how long deliveries are stored. */
export async function republishReceivers(
  change: UnitOfWork,
  orgId: string,
  plan: Plan,
): Promise<void> {
  const rows = await change.tx
    .update(webhookReceivers)
    .set({ version: sql`${webhookReceivers.version} + 1` })
    .where(eq(webhookReceivers.orgId, orgId))
    .returning();
  for (const row of rows) enqueueSettings(change, row, plan);
}

export type EncryptedReceiver = Pick<ReceiverRow, "id" | "secret" | "previousSecret">;

/**
 * A batch of receivers with a secret that does not begin with `prefix`, ordered by id.
 * @param after undefined for the first batch.
 */
export function listReceiversUnderOtherKeys(
  { query }: Pick<Database, "query">,
  prefix: string,
  after: string | undefined,
): Promise<EncryptedReceiver[]> {
  const { id, secret, previousSecret } = webhookReceivers;
  const isOther = (column: typeof secret | typeof previousSecret) =>
    and(isNotNull(column), not(like(column, `${prefix}%`)));
  return query
    .select({ id, secret, previousSecret })
    .from(webhookReceivers)
    .where(
      and(
        or(isOther(secret), isOther(previousSecret)),
        after === undefined ? undefined : gt(id, after),
      ),
    )
    .orderBy(asc(id))
    .limit(REENCRYPTION_BATCH_ROWS);
}

/** Changes nothing when the stored secrets are not those that were read: one was rotated or deleted meanwhile. */
export function replaceReceiverSecrets(
  db: Database,
  receiver: EncryptedReceiver,
  reencrypted: Pick<ReceiverRow, "secret" | "previousSecret">,
): Promise<void> {
  return db.transaction(async (change) => {
    const [row] = await change.tx
      .update(webhookReceivers)
      .set({ ...reencrypted, version: sql`${webhookReceivers.version} + 1` })
      .where(
        and(
          eq(webhookReceivers.id, receiver.id),
          eq(webhookReceivers.secret, receiver.secret),
          sql`${webhookReceivers.previousSecret} is not distinct from ${receiver.previousSecret}`,
        ),
      )
      .returning();
    if (!row) return;
    await enqueueSettingsOfAll(change, [row]);
  });
}

/**
 * Deletes a batch of replaced secrets that are no longer accepted. @returns how many; after a full batch there may
 * be more.
 */
export function deleteReplacedSecrets(db: Database): Promise<number> {
  const { id, previousSecretUntil } = webhookReceivers;
  return db.transaction(async (change) => {
    const expired = change.tx
      .select({ id })
      .from(webhookReceivers)
      .where(lte(previousSecretUntil, sql`now()`))
      .limit(EXPIRY_BATCH_ROWS)
      .for("update", { skipLocked: true });
    const rows = await change.tx
      .update(webhookReceivers)
      .set({
        previousSecret: null,
        previousSecretUntil: null,
        version: sql`${webhookReceivers.version} + 1`,
      })
      .where(inArray(id, expired))
      .returning();
    await enqueueSettingsOfAll(change, rows);
    return rows.length;
  });
}

/** The rows may belong to several organizations. */
async function enqueueSettingsOfAll(change: UnitOfWork, rows: ReceiverRow[]): Promise<void> {
  if (rows.length === 0) return;
  const orgIds = [...new Set(rows.map(({ orgId }) => orgId))];
  const orgs = await change.tx
    .select({ id: organizations.id, plan: organizations.plan })
    .from(organizations)
    .where(inArray(organizations.id, orgIds));
  const plans = new Map(orgs.map(({ id, plan }) => [id, plan]));
  for (const row of rows) enqueueSettings(change, row, plans.get(row.orgId)!);
}

function enqueueSettings({ enqueue }: UnitOfWork, row: ReceiverRow, plan: Plan): void {
  const payload = { receiverId: row.id, settings: toReceiverSettings(row, plan) };
  enqueue({ kind: "receiver_settings", payload });
}

function toReceiverSettings(row: ReceiverRow, plan: Plan): ReceiverSettings {
  const { version, validator, secret, previousSecret, previousSecretUntil: until } = row;
  const secrets: ReceiverSettings["secrets"] = [{ sealed: secret, untilMs: null }];
  if (previousSecret !== null && until) {
    secrets.push({ sealed: previousSecret, untilMs: until.getTime() });
  }
  const keepMs = PLAN_LIMITS[plan].inspector_retention_days * DAY_MS;
  return { version, validator, secrets, keepMs };
}
