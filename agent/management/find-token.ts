/** The token that a user names by its name, its nonce or the beginning of its nonce. */
import type { Token } from "../../protocol/schemas/tokens.ts";
import { UsageError } from "../options.ts";
import { RejectionError } from "../rejection-error.ts";
import type { ManagementApi } from "./management-api.ts";
import { PROGRAM } from "../program.ts";

/** How many characters of a nonce a table shows, and the fewest that name a token. */
export const NONCE_SHOWN_CHARS = 12;
const NONCE_MIN_CHARS = 6;
const MATCHES_MAX = 8;

/** @throws RejectionError when there is no such valid token, UsageError when several match. */
export async function findToken(api: ManagementApi, text: string): Promise<Token> {
  const isPrefix = text.length >= NONCE_MIN_CHARS && /^[0-9a-f]+$/.test(text);
  const matches: Token[] = [];
  for await (const page of api.listTokens()) {
    for (const token of page) {
      if (!isTokenValid(token)) continue;
      // The names of other tokens may look like this nonce.
      if (token.nonce === text) return token;
      if (matches.length > MATCHES_MAX) continue;
      if (token.name === text || (isPrefix && token.nonce.startsWith(text))) matches.push(token);
    }
  }
  const [token, ...others] = matches;
  if (!token) {
    throw new RejectionError(
      "not_found",
      `there is no valid token ${text}; run: ${PROGRAM} tokens list`,
    );
  }
  if (others.length > 0) {
    const nonces = matches.map(({ nonce }) => nonce.slice(0, NONCE_SHOWN_CHARS)).join(", ");
    throw new UsageError(`several tokens match ${text}; use the nonce: ${nonces}`);
  }
  return token;
}

export function isTokenValid({ revoked, expiresAt }: Token): boolean {
  return !revoked && expiresAt * 1000 > Date.now();
}
