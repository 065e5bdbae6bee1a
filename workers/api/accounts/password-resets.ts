/** /auth: resetting a forgotten password with a token that is sent by email. */
import {
  EmailAddress,
  PasswordReset,
  Status,
} from "../../../protocol/schemas/accounts/accounts.ts";
import { toOutboxMail } from "../../integrations/mail/mail.ts";
import { passwordChangedMail, passwordResetMail } from "../../integrations/mail/mails.ts";
import { ApiError } from "../../errors.ts";
import { PASSWORD_RESET_MAX_MS } from "../../limits.ts";
import { randomSecret } from "../../identity/accounts/codes.ts";
import { normalizeEmail } from "../../identity/accounts/emails.ts";
import { hashPassword } from "../../identity/accounts/password-hashing.ts";
import { getPasswordError } from "../../identity/accounts/passwords.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import {
  findResetEmail,
  requestPasswordReset,
  resetPassword,
} from "../../store/accounts/password-resets.ts";
import {
  createRouter,
  getHashCaller,
  invalidField,
  jsonResponse,
  route,
  runInBackground,
} from "../route.ts";
import { rateLimited } from "../rate-limit.ts";

export const passwordResets = createRouter();

passwordResets.openapi(
  route({
    operationId: "requestPasswordReset",
    method: "post",
    path: "/auth/forgot",
    summary: "Request a password reset",
    guard: rateLimited,
    body: EmailAddress,
    responses: {
      202: jsonResponse(
        "Returned whether or not the address has an account. A token is sent by email if it has one.",
        Status,
      ),
    },
  }),
  async (c) => {
    const { config, db, address: ip } = c.var;
    const email = normalizeEmail(c.req.valid("json").email);
    const token = randomSecret();
    const expiresAt = new Date(Date.now() + PASSWORD_RESET_MAX_MS);
    const resetMail = passwordResetMail(email, { token, expiresAt }, config);
    const mail = await toOutboxMail(config, resetMail);
    const tokenHash = await sha256Hex(token);
    // After the response, so that it takes the same time for an address without an account.
    runInBackground(c, "reset_not_sent", requestPasswordReset(db, { email, tokenHash, mail, ip }));
    return c.json({ status: "reset_requested" }, 202);
  },
);

passwordResets.openapi(
  route({
    operationId: "resetPassword",
    method: "post",
    path: "/auth/reset",
    summary: "Set a new password with the token from the email",
    description:
      "Revokes the capability tokens and master keys that sessions of the account minted, unless `keep_tokens` is true.",
    guard: rateLimited,
    body: PasswordReset,
    responses: {
      200: jsonResponse("The password is set, and every session of the account has ended.", Status),
    },
    failures: ["invalid_token", "unavailable"],
  }),
  async (c) => {
    const { config, db, address: ip } = c.var;
    const { token, new_password: password, keep_tokens: keepTokens } = c.req.valid("json");
    const tokenHash = await sha256Hex(token);
    const email = await findResetEmail(db, tokenHash);
    if (email === null) throw invalidToken();
    const passwordError = getPasswordError(password, email);
    if (passwordError !== null) throw invalidField("new_password", passwordError);

    const mail = await toOutboxMail(config, passwordChangedMail(email, { keepTokens }, config));
    const passwordHash = await hashPassword(getHashCaller(c, email), password);
    switch (await resetPassword(db, { tokenHash, passwordHash, keepTokens, mail, ip })) {
      case "reset":
        return c.json({ status: "password_reset" }, 200);
      case "invalid_token":
        throw invalidToken();
    }
  },
);

function invalidToken(): ApiError {
  return new ApiError(
    "invalid_token",
    "The token is not valid, was already used, or has expired. Request a new one.",
  );
}
