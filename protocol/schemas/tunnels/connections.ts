/** Connected agents. */
import { z } from "zod";
import { Instant, Uuid } from "../scalars.ts";

export const Connection = z.object({
  agent_id: z
    .uuid()
    .describe("Identifies one connection: an agent that reconnects gets another id."),
  remote_ip: z.string(),
  connected_at: Instant,
  tunnels: z.array(z.uuid()),
});
export type Connection = z.infer<typeof Connection>;

/** An agent that serves a tunnel, as it is now. */
export const TunnelAgent = Connection.omit({ tunnels: true }).extend({
  in_flight: z.int(),
  healthy: z.boolean(),
  local: z
    .string()
    .nullable()
    .describe(
      "The agent's local server: `http://localhost:3000`, `unix:/run/app.sock`, the path of a directory. null: unknown.",
    ),
});
export type TunnelAgent = z.infer<typeof TunnelAgent>;

export const AgentId = z.object({ agent_id: Uuid });
