/** How the API hands a relay's link over (its secret was checked), and what the link's socket remembers. */
import { z } from "zod";
import { RelayHello } from "../../protocol/relay/link.ts";

/** Under this host, which no visitor's request can carry: the edge refuses it. */
export const RELAY_LINK_URL = "https://agent.internal/relay";

export const LinkAttachment = z.object({
  /** Of this connection, random. */
  id: z.string(),
  connectedAtMs: z.number(),
  /** null until the relay described itself. */
  hello: RelayHello.nullable(),
});
export type LinkAttachment = z.infer<typeof LinkAttachment>;
