/**
 * The cookies that this service sets on a tunnel's host: a visitor's pass, and the nonce of a browser that signs in. Only the
 * browser and this service use them: the local server neither receives nor sets them.
 */

export const VISITOR_PASS_COOKIES_MAX = 4;

const PASS = "underpass-visitor";
const SIGN_IN = "underpass-sign-in";
type Name = typeof PASS | typeof SIGN_IN;

/** With TLS, the prefix prevents other hosts and pages without TLS from setting the cookie. */
function toCookieName(name: Name, scheme: string): string {
  return scheme === "https" ? `__Host-${name}` : name;
}

/** Without a Domain attribute, so that browsers do not send it to the hosts of other tunnels. */
function formatCookie(name: Name, scheme: string, value: string, maxAgeSeconds: number): string {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  const secure = scheme === "https" ? "; Secure" : "";
  return `${toCookieName(name, scheme)}=${value}; ${attributes}${secure}`;
}

export function formatPassCookie(scheme: string, pass: string, maxAgeSeconds: number): string {
  return formatCookie(PASS, scheme, pass, maxAgeSeconds);
}

export function formatSignInCookie(scheme: string, nonce: string, maxAgeSeconds: number): string {
  return formatCookie(SIGN_IN, scheme, nonce, maxAgeSeconds);
}

/** A page on a sibling host may have set more cookies of this name: all are read, up to a bound. */
export function readPasses(cookie: string, scheme: string): string[] {
  return readValues(cookie, toCookieName(PASS, scheme)).slice(0, VISITOR_PASS_COOKIES_MAX);
}

/** @returns null without the cookie, and when there is more than one: then another host has set one of them. */
export function readSignInNonce(cookie: string, scheme: string): string | null {
  const [nonce, ...others] = readValues(cookie, toCookieName(SIGN_IN, scheme));
  return nonce !== undefined && others.length === 0 && NONCE.test(nonce) ? nonce : null;
}

/** 256 bits in base64url. */
const NONCE = /^[\w-]{43}$/;

function readValues(cookie: string, name: string): string[] {
  const start = `${name}=`;
  return splitCookies(cookie)
    .map(({ text }) => text.trim())
    .filter((text) => text.startsWith(start))
    .map((text) => text.slice(start.length));
}

/** @returns the other cookies for the local server, byte for byte; null when there are none. */
export function removeVisitorCookies(cookie: string): string | null {
  if (!cookie.includes("underpass-")) return cookie;
  const others = splitCookies(cookie).filter(({ text }) => !SENT.test(text));
  if (others.length === 0) return null;
  const [first, ...rest] = others;
  const start = first!.separator === "" ? first!.text : first!.text.trimStart();
  return start + rest.map(({ separator, text }) => separator + text).join("");
}

const NAMES = `(?:__Host-)?(?:${PASS}|${SIGN_IN})`;
const SENT = new RegExp(`^\\s*${NAMES}\\s*=`);
/** Browsers send a nameless cookie without `=`, so its value could read as a cookie with this name. */
const SET = new RegExp(`^\\s*=?\\s*${NAMES}\\s*(?:[=;]|$)`);

/** @param line the value of a `Set-Cookie` header. */
export function isVisitorCookie(line: string): boolean {
  return SET.test(line);
}

/** The platform joins two `Cookie` headers with a comma. */
function splitCookies(cookie: string): { separator: string; text: string }[] {
  const pieces = cookie.split(/([;,])/);
  return Array.from({ length: (pieces.length + 1) / 2 }, (_, at) => ({
    separator: at === 0 ? "" : pieces[2 * at - 1]!,
    text: pieces[2 * at]!,
  }));
}
