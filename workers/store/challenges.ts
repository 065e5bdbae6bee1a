/** What stands between the first factor and the second. */
import { MFA_CHALLENGE_MAX_MS } from "../../protocol/limits.ts";
import type { Database } from "./client.ts";
import { mfaChallenges } from "./tables/accounts.ts";

export async function insertChallenge(
  { read }: Database,
  challenge: { userId: string; tokenHash: string },
): Promise<void> {
  const expiresAt = new Date(Date.now() + MFA_CHALLENGE_MAX_MS);
  await read.insert(mfaChallenges).values({ ...challenge, expiresAt });
}
