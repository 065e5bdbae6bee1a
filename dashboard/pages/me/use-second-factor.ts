/** The steps in which the user turns two-factor authentication on or off. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { MfaEnabled, TotpEnrollment } from "../../../protocol/schemas/accounts/mfa.ts";
import { sessionsQuery } from "../../api/session-list.ts";
import { call } from "../../api/session.ts";
import { loadMe } from "../../app/session-state.ts";
import { notify } from "../../ui/feedback/notifications.tsx";
import { personalEventsFilter } from "../audit/event-filter.ts";
import { requiresReauthentication } from "./reauthentication-step.tsx";

/** What turns the second factor off. */
export type RemovalProof = "password" | "recovery_code";

type State =
  | { phase: "idle" }
  | { phase: "reauthenticating"; onReauthenticated: () => void | Promise<void> }
  | { phase: "enrolling"; enrollment: TotpEnrollment }
  | { phase: "enabled"; recoveryCodes: string[] }
  | { phase: "turning-off"; proof: RemovalProof };

interface Actions {
  enroll: () => Promise<void>;
  /** Turns the second factor on, with a code of the authenticator app. */
  confirm: (enrollment: TotpEnrollment, code: string) => Promise<void>;
  turnOffWith: (proof: RemovalProof) => void;
  /** @param message a notification, if there is anything to say. */
  finish: (message?: string) => Promise<void>;
  cancel: () => void;
}

export interface SecondFactor {
  state: State;
  actions: Actions;
}

export function useSecondFactor(): SecondFactor {
  const queries = useQueryClient();
  const [state, setState] = useState<State>({ phase: "idle" });
  const reloadEvents = () => queries.invalidateQueries(personalEventsFilter);

  /**
   * Acts. If that requires a fresh session, asks for the password first.
   * @param next runs once the session is fresh.
   */
  async function withFreshSession(
    act: () => Promise<void>,
    next: () => void | Promise<void>,
  ): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!requiresReauthentication(error)) throw error;
      setState({ phase: "reauthenticating", onReauthenticated: next });
    }
  }

  async function requestEnrollment(): Promise<void> {
    const enrollment = await call<TotpEnrollment>("POST", "/auth/mfa/enroll");
    setState({ phase: "enrolling", enrollment });
  }

  async function sendCode({ secret_base32 }: TotpEnrollment, code: string): Promise<void> {
    const proof = { code, secret_base32 };
    const enabled = await call<MfaEnabled>("POST", "/auth/mfa/enroll/verify", proof);
    setState({ phase: "enabled", recoveryCodes: enabled.recovery_codes });
    await Promise.all([queries.invalidateQueries(sessionsQuery), reloadEvents()]);
  }

  const actions: Actions = {
    enroll: () => withFreshSession(requestEnrollment, requestEnrollment),
    confirm: (enrollment, code) =>
      withFreshSession(
        () => sendCode(enrollment, code),
        // The code may expire while the user enters the password, so the form asks for another one of the same secret.
        () => setState({ phase: "enrolling", enrollment }),
      ),
    turnOffWith: (proof) => setState({ phase: "turning-off", proof }),
    async finish(message) {
      await Promise.all([loadMe(), reloadEvents()]);
      setState({ phase: "idle" });
      if (message !== undefined) notify(message);
    },
    cancel: () => setState({ phase: "idle" }),
  };
  return { state, actions };
}
