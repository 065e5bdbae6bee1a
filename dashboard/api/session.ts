/**
 * The session of the page. The access token is only in the memory of this page: the next page gets its own with the
 * refresh cookie, which scripts can't read.
 */
import { ACCESS_TOKEN_SECONDS } from "../../protocol/limits.ts";
import type { AccessToken } from "../../protocol/schemas/accounts/accounts.ts";
import { writeStored, readStored } from "./browser-storage.ts";
import { RequestError, send } from "./request.ts";

/** How long before its expiry the access token is renewed. */
const ACCESS_TOKEN_RENEW_EARLY_SECONDS = 60;

/**
 * Not a secret. Its presence says that there may be a session to renew, so that other visits don't send a request. Its
 * value begins with the id of the user, and changes with the account and organization, so that other tabs notice.
 */
const STORAGE_KEY = "underpass-session";

const SESSION_ENDED = "Your session has ended. Please sign in again.";

let token: string | null = null;
/** Whose session this page renews. A page of a tunnel could have given this browser the cookie of another user. */
let userId: string | null = null;
/** The organization of the access token. The session is renewed for another one if the user is no longer a member of it. */
let organizationId: string | null = null;
let renewal: Promise<boolean> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let notifySessionEnd: (why: string) => void = () => {};
let notifySessionStart: () => void = () => {};
let notifyOrganizationLoss: () => void = () => {};

interface SessionListener {
  /** After a sign-in or a switch. */
  onStart: () => void;
  /** The session continues in another organization, because the user is no longer a member of the previous one. */
  onOrganizationLoss: () => void;
  /** The session has ended, here or elsewhere. */
  onEnd: (why: string) => void;
}

export function watchSession({ onStart, onOrganizationLoss, onEnd }: SessionListener): void {
  notifySessionStart = onStart;
  notifyOrganizationLoss = onOrganizationLoss;
  notifySessionEnd = onEnd;
}

/** Called after a sign-in or a switch to another organization. */
export function beginSession(accessToken: string): void {
  setAccessToken(accessToken);
  updateSessionHint();
  notifySessionStart();
}

export async function signOut(): Promise<void> {
  await call("POST", "/auth/logout");
  writeSessionHint(null);
  endSession("You have been signed out.");
}

/** Ends the session of this page only. */
function endSession(why: string): void {
  clearTimeout(timer);
  token = null;
  userId = null;
  organizationId = null;
  notifySessionEnd(why);
}

/**
 * Gets an access token with the refresh cookie, if this browser may have a session.
 *
 * @param isJustStarted whether a session was started just before, on another page.
 * @returns false when no user is signed in.
 */
export async function resumeSession(isJustStarted: boolean): Promise<boolean> {
  const hint = readSessionHint();
  if (!isJustStarted && hint === null) return false;
  organizationId = null;
  // After a sign-in on another page the user may be another one. Hints of earlier versions do not name the user.
  userId = isJustStarted ? null : (/^[0-9a-f-]{36}(?= )/.exec(hint ?? "")?.[0] ?? null);
  const isSignedIn = await renew(token);
  if (isSignedIn && isJustStarted) updateSessionHint();
  return isSignedIn;
}

/** Reads from the API as the signed-in user. @throws RequestError */
export function load<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  return call("GET", path, undefined, signal);
}

/** Sends a request as the signed-in user. An expired access token is renewed once. @throws RequestError */
export async function call<Answer>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Answer> {
  const [used, usedIn] = [token, organizationId];
  const options = { body, ...(signal && { signal }) };
  try {
    return await send<Answer>(method, path, { ...options, bearer: used });
  } catch (error) {
    const isRefused = error instanceof RequestError && error.code === "unauthorized";
    if (!isRefused || used === null) throw error;
    const isRenewed = await renew(used);
    // A change is not made in another organization than the page showed.
    const isMeantElsewhere = organizationId !== usedIn && method !== "GET";
    // The page shows the sign-in or the other organization, so the result of this call is no longer needed.
    if (!isRenewed || isMeantElsewhere) return new Promise(() => {});
    return send<Answer>(method, path, { ...options, bearer: token });
  }
}

/** For a WebSocket, which can't renew a token that has expired. @returns null when no user is signed in. */
export async function getFreshToken(): Promise<string | null> {
  await load("/auth/me");
  return token;
}

/**
 * For a call that sends a password: its 401 is about the password. Repeating it would count as a second wrong guess, so
 * the session is checked first.
 */
export async function callWithoutRenewal<Answer>(path: string, body: unknown): Promise<Answer> {
  await load("/auth/me");
  return send<Answer>("POST", path, { body, bearer: token });
}

/**
 * Renews once, even when several calls find at the same time that the token has expired.
 * @returns false when the session has ended.
 */
function renew(used: string | null): Promise<boolean> {
  if (token !== used) return Promise.resolve(token !== null);
  renewal ??= renewToken().finally(() => (renewal = undefined));
  return renewal;
}

async function renewToken(): Promise<boolean> {
  const hint = readSessionHint();
  try {
    const query = userId === null ? "" : `?${new URLSearchParams({ user_id: userId })}`;
    const previous = organizationId;
    setAccessToken((await send<AccessToken>("POST", `/auth/refresh${query}`)).access_token);
    if (previous !== null && organizationId !== previous) notifyOrganizationLoss();
    return true;
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== "unauthorized") throw error;
    // If another tab has signed in meanwhile, its session has not ended.
    if (readSessionHint() === hint) writeSessionHint(null);
    endSession(SESSION_ENDED);
    return false;
  }
}

function setAccessToken(accessToken: string): void {
  token = accessToken;
  const claims = readClaims(accessToken);
  userId = claims.sub;
  organizationId = claims.org;
  clearTimeout(timer);
  // When it fails, the next call reports the error.
  const renewSoon = () => void renew(accessToken).catch(() => {});
  timer = setTimeout(renewSoon, (ACCESS_TOKEN_SECONDS - ACCESS_TOKEN_RENEW_EARLY_SECONDS) * 1000);
}

/** The ids of the user and the organization in a token that the service has just issued to this page. */
function readClaims(accessToken: string): { sub: string; org: string } {
  const claims = atob(accessToken.split(".")[1]!.replaceAll("-", "+").replaceAll("_", "/"));
  return JSON.parse(claims) as { sub: string; org: string };
}

function updateSessionHint(): void {
  writeSessionHint(`${userId} ${Date.now()}`);
}

function readSessionHint(): string | null {
  return readStored("localStorage", STORAGE_KEY);
}

function writeSessionHint(value: string | null): void {
  writeStored("localStorage", STORAGE_KEY, value);
}

/** Another tab has changed the account or the organization, or has found that the session has ended. */
window.addEventListener("storage", ({ key, newValue }) => {
  if (key !== STORAGE_KEY) return;
  if (newValue !== null) location.reload();
  // A page that is signed out already may have a half completed sign-in, which must not be lost.
  else if (token !== null) endSession(SESSION_ENDED);
});
