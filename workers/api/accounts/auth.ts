/**
 * /auth: sign-up, email verification and login. No response reveals whether an address has an account: neither by its
 * status, nor by its message, nor by its duration, since a password is hashed in either case.
 */
import { z } from "zod";
import {
  AccountSummary,
  Credentials,
  SignUp,
  EmailAddress,
  EmailCode,
  Me,
  MfaRequired,
  Status,
} from "../../../protocol/schemas/accounts/accounts.ts";
import { Ok } from "../../../protocol/schemas/scalars.ts";
import { toOutboxMail } from "../../integrations/mail/mail.ts";
import {
  alreadyRegisteredMail,
  choosePasswordMail,
  verificationMail,
} from "../../integrations/mail/mails.ts";
import { ApiError } from "../../errors.ts";
import { EMAIL_CODE_MAX_MS, PASSWORD_RESET_MAX_MS } from "../../limits.ts";
import { randomEmailCode, randomSecret } from "../../identity/accounts/codes.ts";
import { isEmailAddress, normalizeEmail } from "../../identity/accounts/emails.ts";
import { getFirstOrganizationTerms } from "../../identity/organization-terms.ts";
import { hashNewPassword, verifyPassword } from "../../identity/accounts/password-hashing.ts";
import { getPasswordError } from "../../identity/accounts/passwords.ts";
import { computeKeyedHashes, sha256Hex } from "../../identity/encryption.ts";
import { getEntitlements } from "../../store/billing/plans.ts";
import {
  findUserByEmail,
  resendCode,
  signUp,
  verifyEmail,
  type NewCode,
} from "../../store/accounts/accounts.ts";
import { findPendingRemoval } from "../../store/accounts/mfa-removals.ts";
import { allow } from "../guard.ts";
import {
  createRouter,
  getHashCaller,
  invalidField,
  jsonResponse,
  route,
  runInBackground,
  type ApiContext,
} from "../route.ts";
import { rateLimited } from "../rate-limit.ts";
import { toAccountSummary, completeFirstFactor } from "./sign-in.ts";

export const auth = createRouter();

auth.openapi(
  route({
    operationId: "signUp",
    method: "post",
    path: "/auth/signup",
    summary: "Sign up",
    guard: rateLimited,
    body: SignUp,
    failures: ["unavailable"],
    responses: { 201: jsonResponse("Returned whether or not the address has an account.", Status) },
  }),
  async (c) => {
    const { password, ...given } = c.req.valid("json");
    const email = normalizeEmail(given.email);
    if (!isEmailAddress(email)) throw invalidField("email", "must be an email address");
    const passwordError = getPasswordError(password, email);
    if (passwordError !== null) throw invalidField("password", passwordError);

    const { config, db } = c.var;
    await signUp(db, {
      ...(await newCode(c, email)),
      passwordHash: await hashNewPassword(getHashCaller(c, email), password),
      mailIfVerified: await toOutboxMail(config, alreadyRegisteredMail(email, config)),
    });
    return c.json({ status: "pending_email_verification" }, 201);
  },
);

auth.openapi(
  route({
    operationId: "verifyEmail",
    method: "post",
    path: "/auth/verify-email-otp",
    summary: "Verify an email address with the code from the email",
    guard: rateLimited,
    body: EmailCode,
    description:
      "When sign-ups with different passwords used the address, none of them counts: the status is `password_required`, and a link to set the password is mailed.",
    responses: {
      200: jsonResponse(
        "`verified`: the account can log in. `password_required`: it can once its password is set.",
        Status,
      ),
    },
    badRequestCode: "invalid_code",
  }),
  async (c) => {
    const { email: given, code } = c.req.valid("json");
    const { config, db, address } = c.var;
    const email = normalizeEmail(given);
    const token = randomSecret();
    const expiresAt = new Date(Date.now() + PASSWORD_RESET_MAX_MS);
    const mail = choosePasswordMail(email, { token, expiresAt }, config);
    const outcome = await verifyEmail(db, {
      email,
      codeHashes: await hashEmailCode(c, email, code),
      terms: getFirstOrganizationTerms(config),
      passwordLink: {
        tokenHash: await sha256Hex(token),
        mail: await toOutboxMail(config, mail),
      },
      ip: address,
    });
    switch (outcome) {
      case "verified":
        return c.json({ status: "verified" }, 200);
      case "no_password":
        return c.json({ status: "password_required" }, 200);
      case null:
        throw new ApiError(
          "invalid_code",
          "The code is wrong, was replaced, or has expired. Request a new one.",
        );
    }
  },
);

auth.openapi(
  route({
    operationId: "resendVerificationCode",
    method: "post",
    path: "/auth/resend-verify-otp",
    summary: "Send another verification code",
    guard: rateLimited,
    body: EmailAddress,
    responses: {
      200: jsonResponse(
        "Returned whether or not the address has an account. The previous code is no longer valid.",
        Ok,
      ),
    },
  }),
  async (c) => {
    const code = await newCode(c, normalizeEmail(c.req.valid("json").email));
    // After the response, so that it takes the same time for an address without an account.
    runInBackground(c, "code_not_sent", resendCode(c.var.db, code));
    return c.json({ ok: true as const }, 200);
  },
);

auth.openapi(
  route({
    operationId: "logIn",
    method: "post",
    path: "/auth/login",
    summary: "Log in",
    guard: rateLimited,
    body: Credentials,
    setsCookie: true,
    responses: {
      200: jsonResponse(
        "Logged in; sets the `qnt_refresh` cookie. Or a two-factor authentication challenge.",
        z.union([AccountSummary, MfaRequired]),
      ),
    },
    failures: ["unauthorized", "unavailable"],
  }),
  async (c) => {
    const { email: given, password } = c.req.valid("json");
    const email = normalizeEmail(given);
    const user = await findUserByEmail(c.var.db, email);
    const caller = getHashCaller(c, email);
    const matches = await verifyPassword(caller, user?.passwordHash ?? null, password);
    if (!user?.emailVerifiedAt || !matches) {
      const message =
        "The email address or the password is wrong, or the address is not verified yet.";
      throw new ApiError("unauthorized", message);
    }
    return c.json(await completeFirstFactor(c, user), 200);
  },
);

auth.openapi(
  route({
    operationId: "getAccount",
    method: "get",
    path: "/auth/me",
    summary: "Get the account that is signed in, and what its plan includes",
    guard: allow("account:self"),
    responses: { 200: jsonResponse("The account.", Me) },
  }),
  async (c) => {
    const { config, db, principal, accessToken } = c.var;
    const { mfaEnabled, hasPassword, userId } = principal;
    const entitlements = getEntitlements(principal, config.HOSTED, new Date());
    const removal = mfaEnabled ? await findPendingRemoval(db, userId) : null;
    return c.json(
      {
        ...toAccountSummary(principal, accessToken),
        has_password: hasPassword,
        mfa_enabled: mfaEnabled,
        mfa_removable_at: removal?.toISOString() ?? null,
        entitlements,
        billing_mode: config.BILLING_MODE,
      },
      200,
    );
  },
);

async function newCode(c: ApiContext, email: string): Promise<NewCode> {
  const code = randomEmailCode();
  const [codeHash] = await hashEmailCode(c, email, code);
  const expiresAt = new Date(Date.now() + EMAIL_CODE_MAX_MS);
  return {
    email,
    codeHash,
    mail: await toOutboxMail(c.var.config, verificationMail(email, code, expiresAt)),
    ip: c.var.address,
  };
}

/** The hash includes the address: the same code has another hash for another address. */
function hashEmailCode(c: ApiContext, email: string, code: string): Promise<[string, ...string[]]> {
  return computeKeyedHashes(c.var.config, "e-mail code", `${email} ${code}`);
}
