/**
 * POST /auth/reauthenticate, and what requires it: a stolen access token alone must not make a lasting change of how its
 * user signs in.
 */
import { Reauthenticate, Status } from "../../../protocol/schemas/accounts/accounts.ts";
import { ApiError } from "../../errors.ts";
import { verifyPassword } from "../../identity/accounts/password-hashing.ts";
import { findUserPasswordHash } from "../../store/accounts/accounts.ts";
import { isSessionFresh } from "../../store/accounts/fresh-sessions.ts";
import { reauthenticate, type FactorCheck } from "../../store/accounts/second-factors.ts";
import { allow } from "../guard.ts";
import { rateLimited } from "../rate-limit.ts";
import {
  createRouter,
  getHashCaller,
  getMemberActor,
  jsonResponse,
  route,
  type ApiContext,
} from "../route.ts";
import { checkTotp } from "./totp-check.ts";

export const reauthentication = createRouter();

const OTHER_WAY = "sign in again, or send a code of the authenticator app";

reauthentication.openapi(
  route({
    operationId: "reauthenticate",
    method: "post",
    path: "/auth/reauthenticate",
    summary: "Confirm your identity again",
    description:
      "With the password, or a code of the authenticator app. An account that signs in through a provider only signs in again instead: a new session is fresh.",
    guard: [rateLimited, allow("account:self")],
    body: Reauthenticate,
    example: { password: "correct horse battery staple" },
    responses: { 200: jsonResponse("The session is fresh for 10 minutes.", Status) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { password, code } = c.req.valid("json");
    const { db, principal } = c.var;
    const verdict = password === undefined ? null : await checkPassword(c, password, OTHER_WAY);
    const isProved = await reauthenticate(db, getMemberActor(c), {
      sessionId: principal.sessionId,
      prove: async ({ passwordHash, mfaSecret }) =>
        verdict ? verdict(passwordHash) : checkTotp(c.var.config, mfaSecret, code ?? ""),
    });
    if (!isProved) {
      const proof = password === undefined ? "code" : "password";
      const message = `The ${proof} is wrong. After too many wrong attempts, none is accepted for an hour.`;
      throw new ApiError("unauthorized", message);
    }
    return c.json({ status: "reauthenticated" }, 200);
  },
);

/**
 * Hashes before the change begins, because a hash waits for its turn.
 *
 * @param otherWay what the user of an account without a password does instead. It is not a wrong guess.
 * @returns the verdict for the change, which knows the stored hash: the password must have been compared with that one.
 */
export async function checkPassword(
  c: ApiContext,
  password: string,
  otherWay: string,
): Promise<(storedHash: string | null) => Extract<FactorCheck, { factor: "password" }>> {
  const { userId } = c.var.principal;
  const hash = await findUserPasswordHash(c.var.db, userId);
  if (hash === null)
    throw new ApiError("unauthorized", `This account has no password. Instead, ${otherWay}.`);
  const matches = await verifyPassword(getHashCaller(c, userId), hash, password);
  return (storedHash) => ({ factor: "password", matches: matches && hash === storedHash });
}

/** @throws ApiError `reauthentication_required` unless the user has signed in or confirmed their identity within 10 minutes. */
export async function requireFreshSession(c: ApiContext): Promise<void> {
  const { db, principal } = c.var;
  if (!(await isSessionFresh(db.query, principal.sessionId))) throw reauthenticationRequired();
}

export function reauthenticationRequired(): ApiError {
  return new ApiError(
    "reauthentication_required",
    "Confirm your identity: send your password to /auth/reauthenticate, or sign in again.",
  );
}
