/** The password of a tunnel (HTTP Basic, RFC 7617). */
import { z } from "zod";
import { toNfkc } from "../../../shared/text/nfkc.ts";
import {
  BASIC_AUTH_PASSWORD_MIN_CHARS,
  BASIC_AUTH_USERNAME_MAX_CHARS,
  PASSWORD_MAX_BYTES,
} from "../../limits.ts";
import { atLeastOne, ONE_LINE_RULE } from "../scalars.ts";
import { toUtf8 } from "../../../shared/bytes.ts";

/** A colon ends the username in the credentials. Control characters can't be typed. */
const Username = z
  .string()
  .min(1)
  .max(BASIC_AUTH_USERNAME_MAX_CHARS)
  .regex(/^[^:]*$/, "must not contain a colon")
  .regex(...ONE_LINE_RULE);
const Password = z
  .string()
  .min(BASIC_AUTH_PASSWORD_MIN_CHARS)
  .regex(...ONE_LINE_RULE)
  .refine(
    (password) => toUtf8(toNfkc(password)).length <= PASSWORD_MAX_BYTES,
    `must have at most ${PASSWORD_MAX_BYTES} bytes`,
  )
  .meta({ maxLength: PASSWORD_MAX_BYTES });

/** As an agent sends it. */
export const TunnelPassword = z.object({ username: Username, password: Password });
export type TunnelPassword = z.output<typeof TunnelPassword>;

/** The username can be given in either of two fields. */
export const SetBasicAuth = z
  .object({
    username: Username.optional(),
    user: Username.optional().describe("Another name for `username`."),
    password: Password,
  })
  .refine(({ username, user }) => (username ?? user) !== undefined, {
    path: ["username"],
    message: "is required",
  })
  .meta(atLeastOne("username", "user"));

export const BasicAuthState = z.object({ id: z.uuid(), auth_enabled: z.boolean() });

/** The password is stored as a hash and never returned. */
export const TunnelBasicAuth = BasicAuthState.extend({ username: z.string().nullable() });
