/** /auth/mfa and /auth/login/mfa: the second factor. What is wrong with one that is shown is never said. */
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { z } from "zod";
import { AccountSummary, Status } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  ConfirmSecret,
  DisableMfa,
  MfaEnabled,
  PassChallenge,
  PendingSecret,
} from "../../../protocol/schemas/accounts/mfa.ts";
import { sealMail } from "../../integrations/mail/mail.ts";
import { secondFactorMail } from "../../integrations/mail/mails.ts";
import { ApiError } from "../../errors.ts";
import { verifyPassword } from "../../identity/accounts/passwords.ts";
import { hashRecoveryCode, newRecoveryCodes } from "../../identity/accounts/recovery-codes.ts";
import { seal, sha256Hex, unseal } from "../../identity/sealing.ts";
import {
  newTotpSecret,
  readTotpSecret,
  stepOfTotpCode,
  TOTP_SECRET_PURPOSE,
  totpUri,
} from "../../identity/accounts/totp.ts";
import {
  disableSecondFactor,
  enableSecondFactor,
  passChallenge,
} from "../../store/accounts/second-factors.ts";
import { allow } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  invalidField,
  createRouter,
  route,
  type ApiContext,
} from "../route.ts";
import { rateLimited } from "../rate-limit.ts";
import { signIn } from "./sign-in.ts";

/** How long a secret that was shown waits to be confirmed. */
const MFA_ENROLLMENT_MAX_MS = 15 * 60_000;

export const mfa = createRouter();

const ownAccount = allow("account:self");
const COOKIE = "underpass-mfa";
const COOKIE_PURPOSE = "mfa enrollment";
const Pending = z.object({ userId: z.string(), secret: z.string(), expiresAt: z.number() });

mfa.openapi(
  route({
    method: "post",
    path: "/auth/mfa/enroll",
    summary: "Get a secret for an authenticator",
    description: "Nothing is stored: the secret waits, sealed, in a cookie of the caller.",
    guard: ownAccount,
    responses: { 200: jsonResponse("To be confirmed by a code of it.", PendingSecret) },
    failures: ["conflict"],
  }),
  async (c) => {
    const { principal } = c.var;
    if (principal.mfaEnabled) throw alreadyEnabled();
    const secret = newTotpSecret();
    await setPendingSecret(c, secret);
    const uri = totpUri(secret, principal.email);
    return c.json({ otpauth_uri: uri, secret_base32: secret }, 200);
  },
);

mfa.openapi(
  route({
    method: "post",
    path: "/auth/mfa/enroll/verify",
    summary: "Confirm the secret: the second factor is on",
    description: "The account's other sessions end.",
    guard: ownAccount,
    body: ConfirmSecret,
    responses: { 200: jsonResponse("The recovery codes are shown this once.", MfaEnabled) },
    failures: ["invalid_code", "conflict"],
  }),
  async (c) => {
    const { code, secret_base32: given } = c.req.valid("json");
    const { config, db, principal } = c.var;
    const secret = given === undefined ? await readPendingSecret(c) : readTotpSecret(given);
    if (secret === null) {
      if (given !== undefined) throw invalidField("secret_base32", "is not a secret");
      const message = "No secret waits to be confirmed, or no longer: start again.";
      throw new ApiError("invalid_code", message);
    }
    const step = stepOfTotpCode(secret, code, Date.now());
    if (step === null) throw wrongCode();

    const codes = newRecoveryCodes();
    const outcome = await enableSecondFactor(db, getMemberActor(c), {
      sealedSecret: await seal(config, TOTP_SECRET_PURPOSE, secret),
      step,
      codeHashes: await Promise.all(codes.map((text) => hashRecoveryCode(principal.userId, text))),
      sessionId: principal.sessionId,
      mail: await sealMail(config, secondFactorMail(principal.email, true, config)),
    });
    switch (outcome) {
      case "enabled":
        deleteCookie(c, COOKIE, cookieOptions(c));
        return c.json({ status: "enabled" as const, recovery_codes: codes }, 200);
      case "enabled_already":
        throw alreadyEnabled();
      case "code_spent":
        throw wrongCode();
    }
  },
);

mfa.openapi(
  route({
    method: "post",
    path: "/auth/mfa/disable",
    summary: "Turn the second factor off",
    description: "By the password or a recovery code: an access token alone could be a stolen one.",
    guard: [rateLimited, ownAccount],
    optionalBody: DisableMfa,
    responses: { 200: jsonResponse("It is off, and its recovery codes are gone.", Status) },
    failures: ["conflict"],
  }),
  async (c) => {
    const { password, recovery_code: recoveryCode } = c.req.valid("json");
    if (password === undefined && recoveryCode === undefined) {
      throw new ApiError("unauthorized", "The password or a recovery code is needed for that.");
    }
    const { config, db, principal } = c.var;
    const outcome = await disableSecondFactor(db, getMemberActor(c), {
      prove: async (account) =>
        password === undefined
          ? toRecoveryProof(account.id, recoveryCode ?? "")
          : { factor: "password", matches: verifyPassword(account.passwordHash, password) },
      mail: await sealMail(config, secondFactorMail(principal.email, false, config)),
    });
    switch (outcome) {
      case "disabled":
        return c.json({ status: "disabled" }, 200);
      case "not_enabled":
        throw new ApiError("conflict", "There is no second factor to turn off.");
      case "refused": {
        const shown = password === undefined ? "recovery code" : "password";
        const message = `The ${shown} is wrong, or wrong ones came too often: then wait an hour.`;
        throw new ApiError("unauthorized", message);
      }
    }
  },
);

mfa.openapi(
  route({
    method: "post",
    path: "/auth/login/mfa",
    summary: "Log in: the second factor",
    guard: rateLimited,
    body: PassChallenge,
    responses: { 200: jsonResponse("Sets the `qnt_refresh` cookie.", AccountSummary) },
    failures: ["unauthorized"],
  }),
  async (c) => {
    const { challenge_token: token, ...shown } = c.req.valid("json");
    const { config, db, address } = c.var;
    const passed = await passChallenge(db, {
      tokenHash: await sha256Hex(token),
      ip: address,
      prove: async ({ id, mfaSecret }) => {
        const { code, recovery_code: recoveryCode } = shown;
        if (code === undefined) return toRecoveryProof(id, recoveryCode ?? "");
        const secret = mfaSecret && (await unseal(config, TOTP_SECRET_PURPOSE, mfaSecret));
        return { factor: "totp", step: secret ? stepOfTotpCode(secret, code, Date.now()) : null };
      },
    });
    if (!passed) {
      const message = "The code is wrong, or the sign-in is over: then log in again.";
      throw new ApiError("unauthorized", message);
    }
    return c.json(await signIn(c, passed.account, passed.factor), 200);
  },
);

async function toRecoveryProof(userId: string, typed: string) {
  const codeHash = await hashRecoveryCode(userId, typed);
  return { factor: "recovery_code" as const, codeHash };
}

function alreadyEnabled(): ApiError {
  return new ApiError("conflict", "A second factor is on. Turn it off before you set up another.");
}

function wrongCode(): ApiError {
  return new ApiError("invalid_code", "The code is wrong or was used before.");
}

// ── The secret that waits to be confirmed ──

async function setPendingSecret(c: ApiContext, secret: string): Promise<void> {
  const pending: z.infer<typeof Pending> = {
    userId: c.var.principal.userId,
    secret,
    expiresAt: Date.now() + MFA_ENROLLMENT_MAX_MS,
  };
  const sealed = await seal(c.var.config, COOKIE_PURPOSE, JSON.stringify(pending));
  setCookie(c, COOKIE, sealed, { ...cookieOptions(c), maxAge: MFA_ENROLLMENT_MAX_MS / 1000 });
}

/** @returns null when there is none, it waited for too long, or it is somebody else's. */
async function readPendingSecret(c: ApiContext): Promise<string | null> {
  const text = await unseal(c.var.config, COOKIE_PURPOSE, getCookie(c, COOKIE) ?? "").catch(
    () => null,
  );
  if (text === null) return null;
  const { userId, secret, expiresAt } = Pending.parse(JSON.parse(text));
  return userId === c.var.principal.userId && Date.now() < expiresAt ? secret : null;
}

function cookieOptions(c: ApiContext) {
  return {
    path: "/auth/mfa",
    httpOnly: true,
    sameSite: "Lax",
    secure: c.var.config.PUBLIC_SCHEME === "https",
  } as const;
}
