/**
 * Who is signed in. The access token is in this page's memory and nowhere else: the next page gets its own
 * by the refresh cookie, which no script can read.
 */
import { ACCESS_TOKEN_SECONDS } from "../protocol/limits.ts";
import type { AccessToken } from "../protocol/schemas/accounts/accounts.ts";
import { keep, kept } from "./kept.ts";
import { Problem, send } from "./request.ts";

/** A page renews its token this long before it ends. */
const ACCESS_TOKEN_RENEW_EARLY_SECONDS = 60;

/**
 * Not a secret: says that there is a session to renew, so that a stranger's visit asks for none, and changes
 * with the account or organization, so that other tabs notice.
 */
const MARK = "underpass-session";

let token: string | null = null;
let renewal: Promise<boolean> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let ended: (why: string) => void = () => {};

/** @param act once the session is over, wherever it was ended. */
export function onSessionEnd(act: (why: string) => void): void {
  ended = act;
}

/** Somebody signed in, or went to another organization. */
export function beginSession(accessToken: string): void {
  hold(accessToken);
  markAnew();
}

export async function signOut(): Promise<void> {
  await call("POST", "/auth/logout");
  endSession("You are signed out.");
}

function endSession(why: string): void {
  clearTimeout(timer);
  token = null;
  mark(null);
  ended(why);
}

/**
 * @param isSure a session was begun elsewhere a moment ago.
 * @returns false where nobody is signed in.
 */
export async function resumeSession(isSure: boolean): Promise<boolean> {
  if (!isSure && !isMarked()) return false;
  const isKnown = await renew(token);
  if (isKnown && isSure) markAnew();
  return isKnown;
}

/** As whoever is signed in. An access token that has ended is renewed, once. */
export async function call<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
  const used = token;
  try {
    return await send<Answer>(method, path, body, used);
  } catch (error) {
    const isRefused = error instanceof Problem && error.code === "unauthorized";
    if (!isRefused || used === null) throw error;
    // The page begins again: nobody waits for this answer any longer.
    if (!(await renew(used))) return new Promise(() => {});
    return send<Answer>(method, path, body, token);
  }
}

/**
 * For a call that shows a password: its 401 is about that. Repeating it would count as a second wrong guess,
 * so the session is looked at first.
 */
export async function callWithProof<Answer>(path: string, body: unknown): Promise<Answer> {
  await call("GET", "/auth/me");
  return send<Answer>("POST", path, body, token);
}

/**
 * Once, however many calls find at the same moment that the token has ended.
 * @returns false when the session is over.
 */
function renew(used: string | null): Promise<boolean> {
  if (token !== used) return Promise.resolve(token !== null);
  renewal ??= fetchToken().finally(() => (renewal = undefined));
  return renewal;
}

async function fetchToken(): Promise<boolean> {
  try {
    hold((await send<AccessToken>("POST", "/auth/refresh")).access_token);
    return true;
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "unauthorized") throw error;
    endSession("Your session has ended. Sign in again.");
    return false;
  }
}

function hold(accessToken: string): void {
  token = accessToken;
  clearTimeout(timer);
  // When it fails, the next call finds out, and says so.
  const renewSoon = () => void renew(accessToken).catch(() => {});
  timer = setTimeout(renewSoon, (ACCESS_TOKEN_SECONDS - ACCESS_TOKEN_RENEW_EARLY_SECONDS) * 1000);
}

function isMarked(): boolean {
  return kept("localStorage", MARK) !== null;
}

function markAnew(): void {
  mark(String(Date.now()));
}

function mark(value: string | null): void {
  keep("localStorage", MARK, value);
}

/** What the page shows is somebody else's by now, or another organization's. */
window.addEventListener("storage", ({ key }) => {
  if (key === MARK) location.reload();
});
