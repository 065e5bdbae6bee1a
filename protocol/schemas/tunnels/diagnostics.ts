/** What `underpass doctor` asks the service: how an agent's token and its connection work. */
import { z } from "zod";
import { PLANS } from "../../plans.ts";
import { RelayAccess } from "../networks.ts";
import { Token } from "../tokens.ts";

/** The token that a request is sent with, and the organization that it belongs to. */
export const PresentedToken = Token.omit({ revoked: true }).extend({
  organization: z
    .object({ id: z.uuid(), name: z.string(), plan: z.enum(PLANS) })
    .describe("The organization that owns the token."),
  approved: z.boolean().describe("Whether the organization may use the service."),
  overBudget: z
    .boolean()
    .describe(
      "Whether this month's budget of the token, its master key or its organization is used up.",
    ),
  relays: z
    .array(RelayAccess.shape.relay.pick({ id: true, url: true }))
    .describe("The connected relays, which TCP tunnels and private networks need."),
});
export type PresentedToken = z.infer<typeof PresentedToken>;

/** The largest binary message of a diagnostic connection, in either direction. */
export const DIAGNOSTIC_MESSAGE_MAX_BYTES = 64 * 1024;
/** The longest text message of a client: a `DiagnosticDownload` is shorter. */
export const DIAGNOSTIC_TEXT_MAX_CHARS = 100;
/** All binary messages of a diagnostic connection together, in each direction. */
export const DIAGNOSTIC_BYTES_MAX = 2 * 1024 * 1024;
/** All messages of a client on a diagnostic connection. */
export const DIAGNOSTIC_MESSAGES_MAX = 200;
/** The service ends a diagnostic connection after this time. */
export const DIAGNOSTIC_CONNECTION_MAX_MS = 10_000;

/** The service's first message on a diagnostic connection, as JSON text. */
export const DiagnosticWelcome = z.object({ protocol: z.int(), server: z.string() });
export type DiagnosticWelcome = z.infer<typeof DiagnosticWelcome>;

/** A client's text message, as JSON: asks for one binary message of this length. */
export const DiagnosticDownload = z.object({
  bytes: z.int().min(0).max(DIAGNOSTIC_MESSAGE_MAX_BYTES),
});

/** The response to a client's binary message, as JSON text: how many bytes have arrived so far. */
export const DiagnosticReceipt = z.object({ received: z.int() });
export type DiagnosticReceipt = z.infer<typeof DiagnosticReceipt>;
