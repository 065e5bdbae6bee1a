/** Sign-in of machines: the device flow (RFC 8628), and the first account of a self-hosted server. */
import { z } from "zod";
import { EMAIL_MAX_CHARS } from "../../limits.ts";
import { NewPassword, VisibleLine } from "../scalars.ts";

const LABEL_MAX_CHARS = 100;

export const StartDevice = z.object({
  label: VisibleLine(LABEL_MAX_CHARS).default("command line"),
});
export const DeviceAuthorization = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: z.string(),
  verification_uri_complete: z.string(),
  interval: z.int().describe("Seconds."),
  expires_in: z.int(),
});
export const DeviceCode = z.object({ device_code: z.string() });
/** The longest time that a poll waits for an approval. */
export const DEVICE_POLL_MAX_SECONDS = 25;
export const PollDevice = DeviceCode.extend({
  wait: z.number().min(0).max(DEVICE_POLL_MAX_SECONDS).default(DEVICE_POLL_MAX_SECONDS),
});
export const DeviceQuery = z.object({ code: z.string() });
export const PendingDevice = z.object({
  label: z.string(),
  user_code: z.string(),
  requested_from: z.string().nullable().describe("The machine's IP address; null when unknown."),
  requested_at: z.iso.datetime(),
});
export type PendingDevice = z.infer<typeof PendingDevice>;
export const DeviceToken = z.object({ wire_bytes_b64: z.string(), label: z.string() });

export const SetupState = z.object({
  needed: z.boolean().describe("Whether the server has no owner yet."),
  mail: z
    .enum(["smtp", "files"])
    .describe(
      "`files`: the server has no mail server. Its operator finds each mail in the data directory.",
    ),
});
export type SetupState = z.infer<typeof SetupState>;

export const Setup = z.object({
  code: z.string(),
  email: z
    .string()
    .meta({ maxLength: EMAIL_MAX_CHARS, pattern: "^\\s*[^\\s@]+@[^\\s@]+\\s*$" })
    .optional(),
  password: NewPassword.optional(),
  label: VisibleLine(LABEL_MAX_CHARS)
    .nullable()
    .default("first machine")
    .describe("Names the machine; null: no token is minted."),
});
export const SetupResult = DeviceToken.partial().extend({
  email: z.string(),
  password: z.string().optional().describe("Set only when the caller chose none."),
});
export type SetupResult = z.infer<typeof SetupResult>;
