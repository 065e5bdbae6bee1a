/** The credentials of an `Authorization` header of the scheme `Bearer` (RFC 6750 §2.1). */
type Header = string | null | undefined;

/** @returns null when the header holds no token. */
export function parseBearerToken(authorization: Header): string | null {
  return /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? null;
}

/** For a secret that an operator chose, which can have spaces in it. @returns null when the header holds none. */
export function parseBearerSecret(authorization: Header): string | null {
  return /^Bearer +(.+)$/i.exec(authorization ?? "")?.[1] ?? null;
}
