/** Where rows and live state meet: a row whose news is old is set right by asking the tunnel itself. */
import type { TunnelReport } from "../durable-objects/bindings.ts";
import type { Env } from "./env.ts";
import { tunnelObject } from "./objects.ts";
import type { Database } from "./store/client.ts";
import { recordSpending } from "./store/spending.ts";
import type { Served } from "./store/tokens.ts";
import { markDisconnected, reportTunnel } from "./store/tunnels.ts";

/** Afterwards the tunnel's row says what is true. */
export async function confirmTunnel(env: Env, db: Database, tunnelId: string): Promise<void> {
  const report = await tunnelObject(env, tunnelId).confirm();
  if (!report) await markDisconnected(db, tunnelId);
}

/** What a tunnel says of itself, with what follows from it. */
export async function takeReport(env: Env, db: Database, report: TunnelReport): Promise<void> {
  await reportTunnel(db, report);
  if (report.spending.length === 0) return;
  for (const served of await recordSpending(db, report.tunnelId, report.spending)) {
    await stopSpending(env, served);
  }
}

/** Disconnects the agents of a token whose budget is spent. */
export async function stopSpending(env: Env, { tokenNonce, tunnelIds }: Served): Promise<void> {
  await Promise.all(tunnelIds.map(async (id) => tunnelObject(env, id).stopSpending(tokenNonce)));
}
