/** Sessions whose user has confirmed their identity within the last minutes. */
import { and, eq, gt, sql } from "drizzle-orm";
import { FRESH_SESSION_MS } from "../../limits.ts";
import { ago } from "../clock.ts";
import type { Reader, Transaction } from "../transaction.ts";
import { sessions } from "../tables/sessions.ts";

export async function isSessionFresh(reader: Reader, sessionId: string): Promise<boolean> {
  const rows = await reader
    .select({ id: sessions.id })
    .from(sessions)
    .where(and(eq(sessions.id, sessionId), gt(sessions.authenticatedAt, ago(FRESH_SESSION_MS))));
  return rows.length > 0;
}

export async function setSessionFresh(tx: Transaction, sessionId: string): Promise<void> {
  await tx
    .update(sessions)
    .set({ authenticatedAt: sql`now()` })
    .where(eq(sessions.id, sessionId));
}
