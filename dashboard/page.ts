/** A page that requires a sign-in: it resumes the session or asks to sign in, and starts again when the session ends. */
import type { Me } from "../protocol/schemas/accounts/accounts.ts";
import { takeUrlParameters, type UrlParameters } from "./url-parameters.ts";
import { createButton, h } from "./ui/element.ts";
import { getErrorMessage } from "./request.ts";
import { call, onSessionEnd, resumeSession } from "./session.ts";
import { signIn } from "./sign-in.ts";
import { showStep } from "./ui/view.ts";

export interface Page {
  /** The title of the sign-in step. */
  title: string;
  intro?: string;
  show(me: Me): void;
}

/** @param arrival the parameters of the URL, for a page that has already taken them. */
export function openPage(page: Page, arrival = takeUrlParameters()): void {
  void begin(page, arrival, formatSignInFailure(arrival.failure));
}

/** Loads the account and shows the page again. */
export async function showPage(page: Page): Promise<void> {
  page.show(await call<Me>("GET", "/auth/me"));
}

const NO_SIGN_IN = { signedIn: false, challenge: null };

async function begin(
  page: Page,
  { signedIn, challenge }: Pick<UrlParameters, "signedIn" | "challenge">,
  notice = "",
): Promise<void> {
  onSessionEnd(() => {});
  try {
    // A link can contain the token of an attacker. The cookie always belongs to this browser.
    const isSignedIn = challenge === null && (await resumeSession(signedIn));
    if (!isSignedIn) await signIn({ ...page, notice, challenge });
    onSessionEnd((why) => void begin(page, NO_SIGN_IN, why));
    await showPage(page);
  } catch (error) {
    const retry = () => void begin(page, { signedIn, challenge }, notice);
    const again = createButton("Try again", retry, { class: "plain" });
    const message = h("p", { role: "alert" }, getErrorMessage(error));
    showStep("Something went wrong", message, h("div", { class: "actions" }, again));
  }
}

function formatSignInFailure(failure: string | null): string {
  if (failure === null) return "";
  if (failure === "access_denied") return "The sign-in was denied at the provider.";
  return "The provider could not sign you in. Try again, or sign in another way.";
}
