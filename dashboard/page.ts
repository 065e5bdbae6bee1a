/** A page for somebody who is signed in: it finds out who, asks if it must, and begins again when that ends. */
import type { Me } from "../protocol/schemas/accounts/accounts.ts";
import { takeArrival, type Arrival } from "./arrival.ts";
import { button, h } from "./ui/element.ts";
import { wordsOf } from "./request.ts";
import { call, onSessionEnd, resumeSession } from "./session.ts";
import { signIn } from "./sign-in.ts";
import { showStep } from "./ui/view.ts";

export interface Page {
  /** Of the step that asks who it is. */
  title: string;
  intro?: string;
  show(me: Me): void;
}

/** @param arrival of a page that has taken it already. */
export function openPage(page: Page, arrival = takeArrival()): void {
  void begin(page, arrival, noticeOf(arrival.failure));
}

/** Shows the page again, as the account is by now. */
export async function showPage(page: Page): Promise<void> {
  page.show(await call<Me>("GET", "/auth/me"));
}

const NOTHING = { signedIn: false, challenge: null };

async function begin(
  page: Page,
  { signedIn, challenge }: Pick<Arrival, "signedIn" | "challenge">,
  notice = "",
): Promise<void> {
  onSessionEnd(() => {});
  try {
    // Anybody can write a link with a token of theirs in it. The cookie is this browser's own.
    const isKnown = challenge === null && (await resumeSession(signedIn));
    if (!isKnown) await signIn({ ...page, notice, challenge });
    onSessionEnd((why) => void begin(page, NOTHING, why));
    await showPage(page);
  } catch (error) {
    const retry = () => void begin(page, { signedIn, challenge }, notice);
    const again = button("Try again", retry, { class: "plain" });
    const words = h("p", { role: "alert" }, wordsOf(error));
    showStep("That did not work", words, h("div", { class: "actions" }, again));
  }
}

function noticeOf(failure: string | null): string {
  if (failure === null) return "";
  if (failure === "access_denied") return "The provider says that you did not agree.";
  return "The provider could not sign you in. Try again, or another way.";
}
