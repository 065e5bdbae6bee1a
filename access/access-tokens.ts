/**
 * The access tokens of this service's API, as visitors may send them to a tunnel by mistake. A tunnel's local server must
 * not receive one: its owner could act as the visitor.
 */
import { readUnverifiedPart } from "../shared/jwt.ts";

export const ACCESS_TOKEN_AUDIENCE = "underpass";
/** RFC 9068: so that no other JWT of ours is accepted as an access token. */
export const ACCESS_TOKEN_TYPE = "at+jwt";

/** Access tokens are shorter. */
const ACCESS_TOKEN_MAX_CHARS = 4_096;

/** The signature is not checked: a visitor has no use for a forged token, so nothing is lost when it is refused, too. */
export function isAccessToken(token: string, apiOrigin: string): boolean {
  if (token.length > ACCESS_TOKEN_MAX_CHARS) return false;
  if (readUnverifiedPart(token, 0)?.["typ"] !== ACCESS_TOKEN_TYPE) return false;
  const claims = readUnverifiedPart(token, 1);
  return claims?.["iss"] === apiOrigin && claims["aud"] === ACCESS_TOKEN_AUDIENCE;
}

/** No client sends as many words in this header by mistake. */
const WORDS_MAX = 16;

/**
 * Whether a visitor's `Authorization` header has an access token in it: after `Bearer`, after another scheme, in quotes, alone,
 * or in the second of two headers, which the platform joins. Local servers read all of these.
 */
export function containsAccessToken(authorization: string, apiOrigin: string): boolean {
  return authorization.split(/[\s,="']+/, WORDS_MAX).some((word) => isAccessToken(word, apiOrigin));
}
