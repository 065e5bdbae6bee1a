/** The messages that clients send to `GET /inspector/ws`. */
import { z } from "zod";
import { Uuid } from "../scalars.ts";

export const WatchQuery = z.object({
  tunnel_id: Uuid.optional().describe("Default: all tunnels of the organization."),
  batch: z.enum(["0", "1"]).default("0").describe("`1`: a message may contain several requests."),
});

export const SyncReply = z.object({ type: z.literal("sync"), n: z.int().min(0) });
