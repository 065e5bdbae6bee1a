/**
 * /auth/mfa/removal: the way back into an account whose second factor its owner cannot pass, because they lost it or
 * because another person has set it up. It takes the password, the mailbox, and a day in which it can be canceled.
 */
import { Status } from "../../../protocol/schemas/accounts/accounts.ts";
import { MfaRemovalToken, RequestMfaRemoval } from "../../../protocol/schemas/accounts/mfa.ts";
import { ApiError } from "../../errors.ts";
import { randomSecret } from "../../identity/accounts/codes.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import { toOutboxMail } from "../../integrations/mail/mail.ts";
import { removalRequestedMail, secondFactorMail } from "../../integrations/mail/mails.ts";
import { MFA_REMOVAL_DELAY_MS } from "../../limits.ts";
import {
  cancelRemoval,
  cancelRemovalByLink,
  completeRemoval,
  findAccountOfChallenge,
  findRemovalEmail,
  requestRemoval,
} from "../../store/accounts/mfa-removals.ts";
import { allow } from "../guard.ts";
import { rateLimited } from "../rate-limit.ts";
import { createRouter, getMemberActor, jsonResponse, route } from "../route.ts";

export const mfaRemoval = createRouter();

mfaRemoval.openapi(
  route({
    operationId: "requestMfaRemoval",
    method: "post",
    path: "/auth/mfa/removal",
    summary: "Request the removal of a second factor that you can't pass",
    description:
      "With the challenge of a login. A link is mailed that removes the second factor after 24 hours, or cancels the request. A further request within 24 hours changes nothing and sends no mail.",
    guard: rateLimited,
    body: RequestMfaRemoval,
    responses: { 202: jsonResponse("The link was mailed, now or earlier.", Status) },
    failures: ["unauthorized"],
  }),
  async (c) => {
    const { config, db, address: ip } = c.var;
    const challengeHash = await sha256Hex(c.req.valid("json").challenge_token);
    const account = await findAccountOfChallenge(db, challengeHash);
    if (!account) throw new ApiError("unauthorized", "The login has expired. Log in again.");
    const token = randomSecret();
    const usableAt = new Date(Date.now() + MFA_REMOVAL_DELAY_MS);
    const mail = removalRequestedMail(account.email, { token, usableAt }, config);
    const actor = { orgId: null, userId: account.id, ip };
    await requestRemoval(db, actor, {
      tokenHash: await sha256Hex(token),
      mail: await toOutboxMail(config, mail),
    });
    return c.json({ status: "removal_requested" }, 202);
  },
);

mfaRemoval.openapi(
  route({
    operationId: "completeMfaRemoval",
    method: "post",
    path: "/auth/mfa/removal/complete",
    summary: "Remove the second factor with the mailed link",
    guard: rateLimited,
    body: MfaRemovalToken,
    responses: {
      200: jsonResponse(
        "Two-factor authentication is off, and every session of the account has ended.",
        Status,
      ),
    },
    failures: ["invalid_token", "conflict"],
  }),
  async (c) => {
    const { config, db, address: ip } = c.var;
    const tokenHash = await sha256Hex(c.req.valid("json").token);
    const email = await findRemovalEmail(db, tokenHash);
    if (email === null) throw invalidLink();
    const mail = await toOutboxMail(config, secondFactorMail(email, "off", config));
    const outcome = await completeRemoval(db, { tokenHash, mail, ip });
    switch (outcome) {
      case "removed":
        return c.json({ status: "disabled" }, 200);
      case "invalid_token":
        throw invalidLink();
      default:
        throw new ApiError(
          "conflict",
          `The link can't be used before ${outcome.usableAt.toUTCString()}.`,
        );
    }
  },
);

mfaRemoval.openapi(
  route({
    operationId: "cancelMfaRemoval",
    method: "post",
    path: "/auth/mfa/removal/cancel",
    summary: "Cancel the removal of the second factor with the mailed link",
    guard: rateLimited,
    body: MfaRemovalToken,
    responses: { 200: jsonResponse("Canceled: the link no longer works.", Status) },
    failures: ["invalid_token"],
  }),
  async (c) => {
    const { db, address: ip } = c.var;
    const tokenHash = await sha256Hex(c.req.valid("json").token);
    if (!(await cancelRemovalByLink(db, { tokenHash, ip }))) throw invalidLink();
    return c.json({ status: "canceled" }, 200);
  },
);

mfaRemoval.openapi(
  route({
    operationId: "cancelOwnMfaRemoval",
    method: "delete",
    path: "/auth/mfa/removal",
    summary: "Cancel the removal of your second factor",
    guard: allow("account:self"),
    responses: { 200: jsonResponse("Canceled: the mailed link no longer works.", Status) },
    failures: ["not_found"],
  }),
  async (c) => {
    if (!(await cancelRemoval(c.var.db, getMemberActor(c)))) throw noRemoval();
    return c.json({ status: "canceled" }, 200);
  },
);

function invalidLink(): ApiError {
  return new ApiError(
    "invalid_token",
    "The link is not valid, was used or canceled, or has expired. Request a new one when you sign in.",
  );
}

function noRemoval(): ApiError {
  return new ApiError("not_found", "There is no pending removal of two-factor authentication.");
}
