/** Public ports that a test can request at a relay that other tests use too. */
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import type { Person } from "../../server/api.ts";

/**
 * A free port that no other tunnel is assigned by chance: it stays with the owner's organization for a day, whose tunnels are
 * assigned ports that were never reserved before this one.
 */
export async function holdPort(owner: Person): Promise<number> {
  const { body } = await owner.post<Tunnel>("/tunnels", { localPort: 5432, protocol: "tcp" });
  await owner.delete(`/tunnels/${body.id}`);
  return body.publicPort!;
}
