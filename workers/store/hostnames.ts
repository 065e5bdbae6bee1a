/** Public names: who holds each. The row decides; what objects keep is a copy with the row's version. */
import { eq, inArray, isNull, sql } from "drizzle-orm";
import type { Route } from "../../durable-objects/bindings.ts";
import type { Change, Database } from "./client.ts";
import { hostnames } from "./tables/routing.ts";

/** @returns null when no row was ever made for this host. */
export async function findRoute({ read }: Database, host: string): Promise<Route | null> {
  const [row] = await read
    .select({ tunnelId: hostnames.tunnelId, version: hostnames.version })
    .from(hostnames)
    .where(eq(hostnames.host, host));
  return row ?? null;
}

/** Takes a name that is free. One statement, so that of two who want it one gets it. */
export async function claimHostname(
  { tx, tell }: Change,
  host: string,
  tunnelId: string,
): Promise<boolean> {
  const [claimed] = await tx
    .insert(hostnames)
    .values({ host, tunnelId })
    .onConflictDoUpdate({
      target: hostnames.host,
      set: { tunnelId, version: sql`${hostnames.version} + 1` },
      setWhere: isNull(hostnames.tunnelId),
    })
    .returning({ version: hostnames.version });
  if (!claimed) return false;
  tell({ kind: "hostname", payload: { host, tunnelId, version: claimed.version } });
  return true;
}

/** Frees every name of these tunnels. */
export async function releaseHostnames({ tx, tell }: Change, tunnelIds: string[]): Promise<void> {
  if (tunnelIds.length === 0) return;
  const released = await tx
    .update(hostnames)
    .set({ tunnelId: null, version: sql`${hostnames.version} + 1` })
    .where(inArray(hostnames.tunnelId, tunnelIds))
    .returning({ host: hostnames.host, version: hostnames.version });
  for (const { host, version } of released) {
    tell({ kind: "hostname", payload: { host, tunnelId: null, version } });
  }
}
