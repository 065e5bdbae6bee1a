/**
 * The cookie that a visitor's pass is in. It is between the browser and us: the local server neither sees
 * nor sets it.
 */

export const VISITOR_PASS_COOKIES_MAX = 4;

const NAME = "underpass-visitor";

/** Where there is TLS, no other host and no page without TLS can set a cookie of this name. */
export function passCookieName(scheme: string): string {
  return scheme === "https" ? `__Host-${NAME}` : NAME;
}

/** Without a Domain: no other tunnel's host is sent it. */
export function passCookie(scheme: string, pass: string, maxAgeSeconds: number): string {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  const secure = scheme === "https" ? "; Secure" : "";
  return `${passCookieName(scheme)}=${pass}; ${attributes}${secure}`;
}

/** A page on a sibling host may have set more of that name: they are all looked at, up to a bound. */
export function passesIn(cookie: string, scheme: string): string[] {
  const start = `${passCookieName(scheme)}=`;
  return partsOf(cookie)
    .map(({ text }) => text.trim())
    .filter((text) => text.startsWith(start))
    .slice(0, VISITOR_PASS_COOKIES_MAX)
    .map((text) => text.slice(start.length));
}

/** What is left for the local server, byte for byte. null: nothing. */
export function withoutPass(cookie: string): string | null {
  if (!cookie.includes(NAME)) return cookie;
  const kept = partsOf(cookie).filter(({ text }) => !PASS.test(text));
  if (kept.length === 0) return null;
  const [first, ...others] = kept;
  const start = first!.separator === "" ? first!.text : first!.text.trimStart();
  return start + others.map(({ separator, text }) => separator + text).join("");
}

const PASS = new RegExp(`^\\s*(?:__Host-)?${NAME}\\s*=`);
/** A cookie without a name is sent without the sign as well, and then reads as one with that name. */
const SETS_PASS = new RegExp(`^\\s*=?\\s*(?:__Host-)?${NAME}\\s*(?:[=;]|$)`);

/** @param line of `Set-Cookie`. */
export function setsPass(line: string): boolean {
  return SETS_PASS.test(line);
}

/** Two lines of `Cookie` arrive as one, with a comma between. */
function partsOf(cookie: string): { separator: string; text: string }[] {
  const pieces = cookie.split(/([;,])/);
  return Array.from({ length: (pieces.length + 1) / 2 }, (_, at) => ({
    separator: at === 0 ? "" : pieces[2 * at - 1]!,
    text: pieces[2 * at]!,
  }));
}
