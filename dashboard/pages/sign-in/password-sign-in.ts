import type { AccountSummary, MfaRequired } from "../../../protocol/schemas/accounts/accounts.ts";
import { send } from "../../api/request.ts";
import { beginSession } from "../../api/session.ts";
import type { SignInStep } from "./steps.ts";

/** Signs in, or goes to the step that asks for the second factor. @throws RequestError */
export async function signInWithPassword(
  email: string,
  password: string,
  goTo: (step: SignInStep) => void,
): Promise<void> {
  const body = { email, password };
  const answer = await send<AccountSummary | MfaRequired>("POST", "/auth/login", { body });
  if ("mfa_required" in answer) goTo({ name: "code", challenge: answer.challenge_token });
  else beginSession(answer.access_token);
}
