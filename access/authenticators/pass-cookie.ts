/**
 * The cookie that holds a visitor's pass. Only the browser and this service use it: the local server neither
 * receives nor sets it.
 */

export const VISITOR_PASS_COOKIES_MAX = 4;

const NAME = "underpass-visitor";

/** With TLS, the prefix prevents other hosts and pages without TLS from setting this cookie. */
function passCookieName(scheme: string): string {
  return scheme === "https" ? `__Host-${NAME}` : NAME;
}

/** Without a Domain attribute, so that browsers do not send it to the hosts of other tunnels. */
export function formatPassCookie(scheme: string, pass: string, maxAgeSeconds: number): string {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  const secure = scheme === "https" ? "; Secure" : "";
  return `${passCookieName(scheme)}=${pass}; ${attributes}${secure}`;
}

/** A page on a sibling host may have set more cookies of this name: all are read, up to a bound. */
export function readPasses(cookie: string, scheme: string): string[] {
  const start = `${passCookieName(scheme)}=`;
  return splitCookies(cookie)
    .map(({ text }) => text.trim())
    .filter((text) => text.startsWith(start))
    .slice(0, VISITOR_PASS_COOKIES_MAX)
    .map((text) => text.slice(start.length));
}

/** @returns the other cookies for the local server, byte for byte; null when there are none. */
export function removePass(cookie: string): string | null {
  if (!cookie.includes(NAME)) return cookie;
  const others = splitCookies(cookie).filter(({ text }) => !PASS.test(text));
  if (others.length === 0) return null;
  const [first, ...rest] = others;
  const start = first!.separator === "" ? first!.text : first!.text.trimStart();
  return start + rest.map(({ separator, text }) => separator + text).join("");
}

const PASS = new RegExp(`^\\s*(?:__Host-)?${NAME}\\s*=`);
/** Browsers send a nameless cookie without `=`, so its value could read as a cookie with this name. */
const PASS_COOKIE = new RegExp(`^\\s*=?\\s*(?:__Host-)?${NAME}\\s*(?:[=;]|$)`);

/** @param line the value of a `Set-Cookie` header. */
export function isPassCookie(line: string): boolean {
  return PASS_COOKIE.test(line);
}

/** The platform joins two `Cookie` headers with a comma. */
function splitCookies(cookie: string): { separator: string; text: string }[] {
  const pieces = cookie.split(/([;,])/);
  return Array.from({ length: (pieces.length + 1) / 2 }, (_, at) => ({
    separator: at === 0 ? "" : pieces[2 * at - 1]!,
    text: pieces[2 * at]!,
  }));
}
