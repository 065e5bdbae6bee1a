/** Whether a user has signed in before with the same browser, or from the same address. */
import { desc, eq, sql } from "drizzle-orm";
import { auditEvents } from "../tables/audit.ts";
import type { Transaction } from "../transaction.ts";

/** Of the user's events, the newest that are searched for earlier sign-ins. */
const SEARCHED_EVENTS_MAX = 5_000;

export interface SignInNovelty {
  newDevice?: true;
  newAddress?: true;
}

/**
 * For the event of a sign-in. The first one is not new, and neither is a browser while all events are from before browsers
 * were recorded by name.
 */
export async function compareSignIns(
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
