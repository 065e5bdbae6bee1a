/** How the API hands over a relay's link, whose secret it has verified, and the attachment of the link's socket. */
import { z } from "zod";
import { RelayHello } from "../../protocol/relay/link.ts";

/** The edge refuses this host, so no visitor's request can carry it. */
export const RELAY_LINK_URL = "https://agent.internal/relay";

export const LinkAttachment = z.object({
  /** Random; identifies this connection. */
  id: z.string(),
  connectedAtMs: z.number(),
  /** null until the relay has sent it. */
  hello: RelayHello.nullable(),
});
export type LinkAttachment = z.infer<typeof LinkAttachment>;
