/** Where rows and live state meet: a row whose news is old is set right by asking the tunnel itself. */
import type { Env } from "./env.ts";
import { tunnelObject } from "./objects.ts";
import type { Database } from "./store/client.ts";
import { markDisconnected } from "./store/tunnels.ts";

/** Afterwards the tunnel's row says what is true. */
export async function confirmTunnel(env: Env, db: Database, tunnelId: string): Promise<void> {
  const report = await tunnelObject(env, tunnelId).confirm();
  if (!report) await markDisconnected(db, tunnelId);
}
