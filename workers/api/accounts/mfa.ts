/** /auth/mfa and /auth/login/mfa: two-factor authentication. No response reveals why a factor was refused. */
import { z } from "zod";
import { AccountSummary, Status } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  ConfirmTotpEnrollment,
  DisableMfa,
  MfaEnabled,
  VerifyMfaChallenge,
  TotpEnrollment,
} from "../../../protocol/schemas/accounts/mfa.ts";
import { toOutboxMail } from "../../integrations/mail/mail.ts";
import { secondFactorMail } from "../../integrations/mail/mails.ts";
import { ApiError } from "../../errors.ts";
import { hashRecoveryCode, generateRecoveryCodes } from "../../identity/accounts/recovery-codes.ts";
import { encrypt, sha256Hex, decrypt } from "../../identity/encryption.ts";
import {
  generateTotpSecret,
  parseTotpSecret,
  findTotpStep,
  TOTP_SECRET_PURPOSE,
  buildTotpUri,
} from "../../identity/accounts/totp.ts";
import {
  disableSecondFactor,
  enableSecondFactor,
  passChallenge,
} from "../../store/accounts/second-factors.ts";
import { allow } from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  invalidField,
  jsonResponse,
  route,
  type ApiContext,
} from "../route.ts";
import { clearHostCookie, readHostCookie, setHostCookie } from "../host-cookies.ts";
import { rateLimited } from "../rate-limit.ts";
import {
  checkPassword,
  reauthenticationRequired,
  requireFreshSession,
} from "./reauthentication.ts";
import { signIn } from "./sign-in.ts";
import { checkTotp } from "./totp-check.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** How long a new secret can be confirmed. */
const MFA_ENROLLMENT_MAX_MS = 15 * MINUTE_MS;

export const mfa = createRouter();

const ownAccount = allow("account:self");
const COOKIE = "underpass-mfa";
const COOKIE_PURPOSE = "mfa enrollment";
const Pending = z.object({ userId: z.string(), secret: z.string(), expiresAt: z.number() });

mfa.openapi(
  route({
    operationId: "startMfaEnrollment",
    method: "post",
    path: "/auth/mfa/enroll",
    summary: "Get a secret for an authenticator app",
    description:
      "Nothing is stored: the encrypted secret is in a cookie of the caller until it is confirmed. The session must be fresh: its sign-in or `POST /auth/reauthenticate` is at most 10 minutes ago.",
    guard: ownAccount,
    setsCookie: true,
    responses: {
      200: jsonResponse("The secret. Confirm it with a code from the app.", TotpEnrollment),
    },
    failures: ["conflict", "reauthentication_required"],
  }),
  async (c) => {
    const { principal } = c.var;
    if (principal.mfaEnabled) throw alreadyEnabled();
    await requireFreshSession(c);
    const secret = generateTotpSecret();
    await setPendingSecret(c, secret);
    const uri = buildTotpUri(secret, principal.email);
    return c.json({ otpauth_uri: uri, secret_base32: secret }, 200);
  },
);

mfa.openapi(
  route({
    operationId: "enableMfa",
    method: "post",
    path: "/auth/mfa/enroll/verify",
    summary: "Turn two-factor authentication on",
    description:
      "Confirms the secret with a code from the authenticator app. The session must still be fresh. The other sessions of the account end.",
    guard: ownAccount,
    body: ConfirmTotpEnrollment,
    setsCookie: true,
    responses: {
      200: jsonResponse(
        "Two-factor authentication is on. The recovery codes are shown only once.",
        MfaEnabled,
      ),
    },
    failures: ["invalid_code", "conflict", "reauthentication_required"],
  }),
  async (c) => {
    const { code, secret_base32: given } = c.req.valid("json");
    const { config, db, principal } = c.var;
    const secret = given === undefined ? await readPendingSecret(c) : parseTotpSecret(given);
    if (secret === null) {
      if (given !== undefined) throw invalidField("secret_base32", "must be a base32 secret");
      const message =
        "There is no secret to confirm, or it has expired. Request a new one to start again.";
      throw new ApiError("invalid_code", message);
    }
    const step = findTotpStep(secret, code, Date.now());
    if (step === null) throw wrongCode();

    const codes = generateRecoveryCodes();
    const outcome = await enableSecondFactor(db, getMemberActor(c), {
      encryptedSecret: await encrypt(config, TOTP_SECRET_PURPOSE, secret),
      step,
      codeHashes: await Promise.all(codes.map((text) => hashRecoveryCode(principal.userId, text))),
      sessionId: principal.sessionId,
      mail: await toOutboxMail(config, secondFactorMail(principal.email, "on", config)),
    });
    switch (outcome) {
      case "enabled":
        clearHostCookie(c, COOKIE);
        return c.json({ status: "enabled" as const, recovery_codes: codes }, 200);
      case "enabled_already":
        throw alreadyEnabled();
      case "code_spent":
        throw wrongCode();
      case "session_not_fresh":
        throw reauthenticationRequired();
    }
  },
);

mfa.openapi(
  route({
    operationId: "disableMfa",
    method: "post",
    path: "/auth/mfa/disable",
    summary: "Turn two-factor authentication off",
    description: "Requires the password or a recovery code, since an access token could be stolen.",
    guard: [rateLimited, ownAccount],
    optionalBody: DisableMfa,
    example: { password: "correct horse battery staple" },
    responses: {
      200: jsonResponse(
        "Two-factor authentication is off, and its recovery codes are deleted.",
        Status,
      ),
    },
    failures: ["conflict", "unavailable"],
  }),
  async (c) => {
    const { password, recovery_code: recoveryCode } = c.req.valid("json");
    if (password === undefined && recoveryCode === undefined) {
      throw new ApiError(
        "unauthorized",
        "Send the password or a recovery code to turn two-factor authentication off.",
      );
    }
    const { config, db, principal } = c.var;
    const verdict =
      password === undefined ? null : await checkPassword(c, password, "send a recovery code");
    const outcome = await disableSecondFactor(db, getMemberActor(c), {
      prove: async ({ id, passwordHash }) =>
        verdict ? verdict(passwordHash) : toRecoveryProof(id, recoveryCode ?? ""),
      mail: await toOutboxMail(config, secondFactorMail(principal.email, "off", config)),
    });
    switch (outcome) {
      case "disabled":
        return c.json({ status: "disabled" }, 200);
      case "not_enabled":
        throw new ApiError("conflict", "Two-factor authentication is not on.");
      case "refused": {
        const proofName = password === undefined ? "recovery code" : "password";
        const message = `The ${proofName} is wrong. After too many wrong attempts, none is accepted for an hour.`;
        throw new ApiError("unauthorized", message);
      }
    }
  },
);

mfa.openapi(
  route({
    operationId: "completeLogin",
    method: "post",
    path: "/auth/login/mfa",
    summary: "Complete a login that requires two-factor authentication",
    guard: rateLimited,
    body: VerifyMfaChallenge,
    example: { challenge_token: "Vb3nQ0…", code: "123456" },
    setsCookie: true,
    responses: { 200: jsonResponse("Logged in; sets the `qnt_refresh` cookie.", AccountSummary) },
    failures: ["unauthorized"],
  }),
  async (c) => {
    const { challenge_token: token, ...proof } = c.req.valid("json");
    const { config, db, address } = c.var;
    const passed = await passChallenge(db, {
      tokenHash: await sha256Hex(token),
      ip: address,
      prove: async ({ id, mfaSecret }) => {
        const { code, recovery_code: recoveryCode } = proof;
        return code === undefined
          ? toRecoveryProof(id, recoveryCode ?? "")
          : checkTotp(config, mfaSecret, code);
      },
    });
    if (!passed) {
      const message =
        "The code is wrong or was used already, or the login has expired. After too many wrong attempts, none is accepted for an hour.";
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
  return new ApiError(
    "conflict",
    "Two-factor authentication is already on. Turn it off before you set it up again.",
  );
}

function wrongCode(): ApiError {
  return new ApiError("invalid_code", "The code is wrong or has already been used.");
}

// ── The secret that is not confirmed yet ──

async function setPendingSecret(c: ApiContext, secret: string): Promise<void> {
  const pending: z.infer<typeof Pending> = {
    userId: c.var.principal.userId,
    secret,
    expiresAt: Date.now() + MFA_ENROLLMENT_MAX_MS,
  };
  const encrypted = await encrypt(c.var.config, COOKIE_PURPOSE, JSON.stringify(pending));
  setHostCookie(c, COOKIE, encrypted, MFA_ENROLLMENT_MAX_MS / 1000);
}

/** @returns null when there is none, when it has expired, or when it belongs to another account. */
async function readPendingSecret(c: ApiContext): Promise<string | null> {
  const cookie = readHostCookie(c, COOKIE) ?? "";
  const text = await decrypt(c.var.config, COOKIE_PURPOSE, cookie).catch(() => null);
  if (text === null) return null;
  const { userId, secret, expiresAt } = Pending.parse(JSON.parse(text));
  return userId === c.var.principal.userId && Date.now() < expiresAt ? secret : null;
}
