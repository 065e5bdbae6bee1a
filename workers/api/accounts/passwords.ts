/** /auth: a way back in for whoever forgot the password, by a token that only the mailbox is told. */
import {
  EmailAddress,
  PasswordReset,
  Status,
} from "../../../protocol/schemas/accounts/accounts.ts";
import { sealMail } from "../../integrations/mail/mail.ts";
import { passwordChangedMail, passwordResetMail } from "../../integrations/mail/mails.ts";
import { ApiError } from "../../errors.ts";
import { randomSecret } from "../../identity/accounts/codes.ts";
import { normalizeEmail } from "../../identity/accounts/emails.ts";
import { hashPassword, passwordFault } from "../../identity/accounts/passwords.ts";
import { sha256Hex } from "../../identity/sealing.ts";
import {
  findResetEmail,
  requestPasswordReset,
  resetPassword,
} from "../../store/accounts/password-resets.ts";
import { runInBackground, jsonResponse, invalidField, createRouter, route } from "../route.ts";
import { rateLimited } from "../rate-limit.ts";

export const passwords = createRouter();

passwords.openapi(
  route({
    method: "post",
    path: "/auth/forgot",
    summary: "Ask for a new password",
    guard: rateLimited,
    body: EmailAddress,
    responses: {
      202: jsonResponse("Always. A token is mailed if the address has an account.", Status),
    },
  }),
  async (c) => {
    const { config, db, address: ip } = c.var;
    const email = normalizeEmail(c.req.valid("json").email);
    const token = randomSecret();
    const mail = await sealMail(config, passwordResetMail(email, token, config));
    const tokenHash = await sha256Hex(token);
    // The answer takes as long for an address without an account.
    runInBackground(c, "reset_not_sent", requestPasswordReset(db, { email, tokenHash, mail, ip }));
    return c.json({ status: "reset_requested" }, 202);
  },
);

passwords.openapi(
  route({
    method: "post",
    path: "/auth/reset",
    summary: "Set a new password with the token from the mail",
    guard: rateLimited,
    body: PasswordReset,
    responses: { 200: jsonResponse("Set. Every session of the account is over.", Status) },
    failures: ["invalid_token"],
  }),
  async (c) => {
    const { config, db, address: ip } = c.var;
    const { token, new_password: password } = c.req.valid("json");
    const tokenHash = await sha256Hex(token);
    const email = await findResetEmail(db, tokenHash);
    if (email === null) throw invalidToken();
    const fault = passwordFault(password, email);
    if (fault !== null) throw invalidField("new_password", fault);

    const mail = await sealMail(config, passwordChangedMail(email, config));
    const passwordHash = hashPassword(password);
    switch (await resetPassword(db, { tokenHash, passwordHash, mail, ip })) {
      case "reset":
        return c.json({ status: "password_reset" }, 200);
      case "invalid_token":
        throw invalidToken();
    }
  },
);

function invalidToken(): ApiError {
  return new ApiError("invalid_token", "The token is wrong or no longer good.");
}
