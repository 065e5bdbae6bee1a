/** The compact form of JSON Web Tokens (RFC 7515 §7.1), before their signature is verified. */
import { fromBase64Url, isBase64Url } from "./bytes.ts";
import { isJsonObject, parseJson } from "./json.ts";

/** Whether the parts are base64url in its one spelling. The library accepts others, so that a token has several spellings. */
export function isCanonicalJwt(token: string): boolean {
  const parts = token.split(".", 4);
  return parts.length === 3 && parts.every(isBase64Url);
}

/** @param part 0 for the header, 1 for the claims. @returns null unless it is a JSON object. Nothing in it is proven. */
export function readUnverifiedPart(token: string, part: 0 | 1): Record<string, unknown> | null {
  const bytes = fromBase64Url(token.split(".", 2)[part] ?? "");
  if (!bytes) return null;
  const value = parseJson(new TextDecoder().decode(bytes));
  return isJsonObject(value) ? value : null;
}
