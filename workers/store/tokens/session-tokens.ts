/** Tokens by the sessions that minted them: a password reset revokes them, or its user confirms them. */
import { and, eq, isNotNull, isNull } from "drizzle-orm";
import type { UserActor } from "../audit.ts";
import type { UnitOfWork } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { tokens } from "../tables/tokens.ts";
import { revokeTokens } from "./tokens.ts";

function isMintedBySession(userId: string) {
  return and(eq(tokens.createdBy, userId), isNotNull(tokens.sessionId), isNull(tokens.revokedAt));
}

/** In all organizations of the user, with what their master keys have minted. */
export async function revokeTokensOfSessions(change: UnitOfWork, actor: UserActor): Promise<void> {
  const isMinted = isMintedBySession(actor.userId);
  // In a fixed order, so that two changes lock the rows of several organizations in the same order.
  const orgs = await change.tx
    .selectDistinct({ orgId: tokens.orgId })
    .from(tokens)
    .where(isMinted)
    .orderBy(tokens.orgId);
  for (const { orgId } of orgs) await revokeTokens(change, { ...actor, orgId }, isMinted);
}

/** Keeps the tokens valid at this password reset and at later ones: the user has confirmed them. */
export async function confirmTokens(tx: Transaction, userId: string): Promise<void> {
  await tx.update(tokens).set({ sessionId: null }).where(isMintedBySession(userId));
}
