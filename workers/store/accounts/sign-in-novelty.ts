/** Whether a user has signed in before with the same browser, or from the same address. */
import { desc, eq, sql } from "drizzle-orm";
import { auditEvents } from "../tables/audit.ts";
import type { Transaction } from "../transaction.ts";

/** How many of the user's newest events are searched for earlier sign-ins. */
const SEARCHED_EVENTS_MAX = 5_000;

interface SignInNovelty {
  newDevice?: true;
  newAddress?: true;
}

/**
 * Compares a sign-in with the user's earlier ones, for its audit event. A first sign-in is not reported as new, and no
 * browser is while all events are from before browsers were recorded by name.
 */
export async function detectSignInNovelty(
  tx: Transaction,
  { userId, deviceName, ip }: { userId: string; deviceName: string; ip: string },
): Promise<SignInNovelty> {
  const events = tx
    .select({ action: auditEvents.action, ip: auditEvents.ip, metadata: auditEvents.metadata })
    .from(auditEvents)
    .where(eq(auditEvents.userId, userId))
    .orderBy(desc(auditEvents.createdAt))
    .limit(SEARCHED_EVENTS_MAX)
    .as("events");
  const earlierName = sql`${events.metadata} ->> 'deviceName'`;
  const [found] = await tx
    .select({
      isNewDevice: sql<boolean | null>`not bool_or(${earlierName} = ${deviceName})`,
      isNewAddress: sql<boolean | null>`not bool_or(${events.ip} = ${ip})`,
    })
    .from(events)
    .where(eq(events.action, "session_created"));
  return {
    ...(found?.isNewDevice === true && { newDevice: true }),
    ...(found?.isNewAddress === true && { newAddress: true }),
  };
}
