/** How the API hands over a relay's link, whose secret it has verified, and the attachment of the link's socket. */
import { z } from "zod";
import { INTERNAL_HOST } from "../internal-host.ts";
import { RelayHello } from "../../protocol/relay/link.ts";

export const RELAY_LINK_URL = `https://${INTERNAL_HOST}/relay`;

export const LinkAttachment = z.object({
  /** Random; identifies this connection. */
  id: z.string(),
  connectedAtMs: z.number(),
  /** null until the relay has sent it. */
  hello: RelayHello.nullable(),
});
export type LinkAttachment = z.infer<typeof LinkAttachment>;
