/** The second factor: enabling it, disabling it, and passing its challenge at login. */
import { z } from "zod";
import { RECOVERY_CODE_COUNT } from "../../limits.ts";
import { atMostOne, exactlyOne, MailedToken, TypedCode } from "../scalars.ts";

export const TotpEnrollment = z.object({
  otpauth_uri: z.string().describe("For a QR code."),
  secret_base32: z.string(),
});
export type TotpEnrollment = z.infer<typeof TotpEnrollment>;

/** For the document: 16 to 128 bytes in base32, in groups if that is how it was shown. */
const SECRET_PATTERN = "^ *(?:[A-Za-z2-7] *){26,206}=*$";

/** Without `secret_base32` the secret in the enrollment's cookie is used. */
export const ConfirmTotpEnrollment = z.object({
  code: TypedCode,
  secret_base32: z.string().meta({ pattern: SECRET_PATTERN }).optional(),
});

export const MfaEnabled = z.object({
  status: z.literal("enabled"),
  recovery_codes: z.array(z.string()).length(RECOVERY_CODE_COUNT),
});
export type MfaEnabled = z.infer<typeof MfaEnabled>;

export const DisableMfa = z
  .object({ password: z.string().optional(), recovery_code: z.string().optional() })
  .refine(({ password, recovery_code }) => password === undefined || recovery_code === undefined, {
    path: ["recovery_code"],
    error: "must not be given together with password",
  })
  .meta(atMostOne("password", "recovery_code"));

export const VerifyMfaChallenge = z
  .object({
    challenge_token: z.string(),
    code: TypedCode.optional(),
    recovery_code: z.string().optional(),
  })
  .refine(({ code, recovery_code }) => (code === undefined) !== (recovery_code === undefined), {
    path: ["code"],
    error: "is required unless recovery_code is given, and must not be given together with it",
  })
  .meta(exactlyOne("code", "recovery_code"));
export type VerifyMfaChallenge = z.infer<typeof VerifyMfaChallenge>;

/** The token of a login that asks for a second factor that its user does not have. */
export const RequestMfaRemoval = z.object({ challenge_token: z.string() });
/** The token of the mailed link. */
export const MfaRemovalToken = z.object({ token: MailedToken });
