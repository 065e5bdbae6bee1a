/** Who is signed in, as a store for React. */
import { useSyncExternalStore } from "react";
import type { Me } from "../../protocol/schemas/accounts/accounts.ts";
import { load, resumeSession, watchSession } from "../api/session.ts";
import { queryClient } from "./query-client.ts";
import type { OneTimeParameters } from "./one-time-parameters.ts";

type SessionState =
  | { phase: "loading" }
  | { phase: "failed"; error: unknown }
  | { phase: "signed-out"; notice: string; challenge: string | null }
  | {
      phase: "signed-in";
      me: Me;
      /** Why the page shows another organization than before; empty if the user has chosen it. */
      notice: string;
    };

/** How often the account is loaded again: an admin can change the user's role, and an owner the plan. */
const ME_RELOAD_MS = 30_000;

let state: SessionState = { phase: "loading" };
const listeners = new Set<() => void>();

function setState(next: SessionState): void {
  state = next;
  for (const notify of listeners) notify();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useSession(): SessionState {
  return useSyncExternalStore(subscribe, () => state);
}

/** For components that are shown only to a signed-in user. */
export function useMe(): Me {
  const session = useSession();
  if (session.phase !== "signed-in") throw new Error("no user is signed in");
  return session.me;
}

/** Resumes the session of the refresh cookie. Call it once, when the page is opened. */
export async function initializeSession(parameters: OneTimeParameters): Promise<void> {
  watchSession({
    onStart: () => beginOtherSession(),
    onOrganizationLoss: loseOrganization,
    onEnd: endSession,
  });
  setInterval(() => void followMe(), ME_RELOAD_MS);
  document.addEventListener("visibilitychange", () => void followMe());
  await resume(parameters);
}

async function resume({ hasSignedIn, challenge, failure }: OneTimeParameters): Promise<void> {
  // After a failure, the error stays on the page until another attempt succeeds.
  if (state.phase !== "failed") setState({ phase: "loading" });
  try {
    // A link can contain the token of an attacker. The cookie always belongs to this browser.
    const isSignedIn = challenge === null && (await resumeSession(hasSignedIn));
    if (isSignedIn) await loadMe();
    else if (state.phase === "loading" || state.phase === "failed") {
      setState({ phase: "signed-out", notice: formatFailure(failure), challenge });
    }
  } catch (error) {
    setState({ phase: "failed", error });
  }
}

/** After a failure, such as a server that could not be reached. */
export function retrySession(): void {
  void resume({ hasSignedIn: false, challenge: null, failure: null, token: null });
}

/** Loads the account again: after a sign-in, and when its organization, plan or second factor has changed. */
export async function loadMe(notice = ""): Promise<void> {
  try {
    const me = await load<Me>("/auth/me");
    const isSameOrganization =
      state.phase === "signed-in" &&
      state.me.active_org.id === me.active_org.id &&
      state.me.user.id === me.user.id;
    // Data of another organization is never shown, not even while the new data loads.
    if (!isSameOrganization) queryClient.clear();
    setState({ phase: "signed-in", me, notice });
  } catch (error) {
    setState({ phase: "failed", error });
  }
}

/** Shows what others have changed about the account since it was loaded. */
async function followMe(): Promise<void> {
  const before = state;
  if (before.phase !== "signed-in" || document.visibilityState === "hidden") return;
  // The pages themselves say that the server can't be reached.
  const me = await load<Me>("/auth/me").catch(() => null);
  if (me === null || state !== before) return;
  if (JSON.stringify(me) !== JSON.stringify(before.me)) setState({ ...before, me });
}

/** Requests already use the token of the new session, so the pages of the previous session are removed at once. */
function beginOtherSession(notice?: string): void {
  queryClient.clear();
  setState({ phase: "loading" });
  void loadMe(notice);
}

function loseOrganization(): void {
  const name = state.phase === "signed-in" ? state.me.active_org.name : "the organization";
  beginOtherSession(`You are no longer a member of ${name}.`);
}

function endSession(notice: string): void {
  queryClient.clear();
  setState({ phase: "signed-out", notice, challenge: null });
}

function formatFailure(failure: string | null): string {
  if (failure === null) return "";
  if (failure === "access_denied") return "The sign-in was denied at the provider.";
  return "The provider could not sign you in. Try again, or sign in another way.";
}
