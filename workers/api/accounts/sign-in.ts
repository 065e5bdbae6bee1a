/** What follows a passed first factor: the second factor, or a session with its cookie. */
import type { AccountSummary, MfaRequired } from "../../../protocol/schemas/accounts/accounts.ts";
import { ApiError } from "../../errors.ts";
import { signAccessToken } from "../../identity/tokens/access-tokens.ts";
import { randomSecret } from "../../identity/accounts/codes.ts";
import { getFirstOrganizationTerms } from "../../identity/organization-terms.ts";
import { createRefreshToken } from "../../identity/tokens/refresh-tokens.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import type { UserRow } from "../../store/accounts/accounts.ts";
import { insertChallenge } from "../../store/accounts/challenges.ts";
import { openSession, type Principal, type SecondFactor } from "../../store/accounts/sessions.ts";
import type { ApiContext } from "../route.ts";
import { describeDevice } from "./device-name.ts";
import { setRefreshCookie } from "./refresh-cookie.ts";

/** How much of the `User-Agent` is stored with a session. */
const DEVICE_MAX_CHARS = 200;

/** The account as it was when its first factor was verified: a change in the meantime refuses the sign-in. */
type Account = Pick<UserRow, "id" | "passwordHash" | "mfaSecret">;

/** After a password or a provider has identified the account: signs in, or asks for the second factor. */
export async function completeFirstFactor(
  c: ApiContext,
  account: Account,
): Promise<AccountSummary | MfaRequired> {
  if (account.mfaSecret === null) return signIn(c, account);
  const token = randomSecret();
  if (!(await insertChallenge(c.var.db, account, await sha256Hex(token)))) throw accountChanged();
  return { mfa_required: true, challenge_token: token };
}

/** The last step of every way of signing in. */
export async function signIn(
  c: ApiContext,
  account: Account,
  secondFactor?: SecondFactor,
): Promise<AccountSummary> {
  const { config, db, address } = c.var;
  const id = crypto.randomUUID();
  const refresh = await createRefreshToken(config, id);
  // By code points: PostgreSQL cannot store half of a surrogate pair.
  const device = [...(c.req.header("user-agent") ?? "")].slice(0, DEVICE_MAX_CHARS).join("");
  const session = {
    id,
    userId: account.id,
    refreshHash: refresh.hash,
    device,
    deviceName: describeDevice(device),
    ip: address,
  };
  const proof = { passwordHash: account.passwordHash, secondFactor };
  const principal = await openSession(db, session, proof, getFirstOrganizationTerms(config));
  if (!principal) throw accountChanged();
  await setRefreshCookie(c, refresh);
  const accessToken = await signAccessToken(config, {
    sub: account.id,
    sid: id,
    org: principal.orgId,
    role: principal.role,
  });
  return toAccountSummary(principal, accessToken);
}

function accountChanged(): ApiError {
  return new ApiError("unauthorized", "The account has changed in the meantime. Log in again.");
}

export function toAccountSummary(principal: Principal, accessToken: string): AccountSummary {
  return {
    access_token: accessToken,
    user: { id: principal.userId, email: principal.email },
    active_org: {
      id: principal.orgId,
      name: principal.orgName,
      slug: principal.orgSlug,
      role: principal.role,
      approval_status: principal.approvalStatus,
    },
    is_superadmin: principal.isSuperadmin,
  };
}
