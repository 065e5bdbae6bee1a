/** The credentials of an `Authorization` header of the scheme `Bearer` (RFC 6750 §2.1). */

/** @returns null when the header has no such credentials. They can have spaces: an operator may choose such a secret. */
export function parseBearerToken(authorization: string | null | undefined): string | null {
  return /^Bearer +(.+)$/i.exec(authorization ?? "")?.[1] ?? null;
}
