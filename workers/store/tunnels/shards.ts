/** How many objects the visitors of a tunnel are spread over. */
import { changeTunnelSettings, type SettingOutcome } from "../access/gates.ts";
import type { Database } from "../database.ts";
import { republishHostnames } from "../domains/hostnames.ts";
import type { MemberActor } from "../locks.ts";

export function setShards(
  db: Database,
  actor: MemberActor,
  id: string,
  shards: number,
): Promise<SettingOutcome> {
  return changeTunnelSettings(db, actor, id, {
    columns: () => ({ shards }),
    event: ["tunnel_shards_set"],
    enqueueUpdate: async (change, row) => {
      const count = { version: row.settingsVersion, count: shards };
      change.enqueue({ kind: "tunnel_shards", payload: { tunnelId: id, count } });
      await republishHostnames(change, row);
    },
  });
}
