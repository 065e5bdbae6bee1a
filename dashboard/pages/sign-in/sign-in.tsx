/** The steps of signing in, which replace any page that requires it. */
import { useState } from "react";
import { PasswordStep } from "./password-step.tsx";
import {
  CodeStep,
  RecoveryCodeStep,
  RemovalSentStep,
  RemovalStep,
} from "./second-factor-steps.tsx";
import {
  EmailConfirmationStep,
  ForgotPasswordStep,
  PasswordLinkSentStep,
  ResetLinkSentStep,
  SignUpStep,
} from "./sign-up-steps.tsx";
import type { SignInStep } from "./steps.ts";

interface SignInProps {
  title: string;
  /** Why the page requires a sign-in; empty when the reason is obvious. */
  intro: string;
  /** A message about the previous action. */
  notice: string;
  /** The challenge of a sign-in through a provider that requires a second factor. */
  challenge: string | null;
}

export function SignIn({ title, intro, notice, challenge }: SignInProps) {
  const [step, goTo] = useState<SignInStep>(
    challenge === null ? { name: "password", notice } : { name: "code", challenge },
  );
  switch (step.name) {
    case "password":
      return <PasswordStep step={step} goTo={goTo} title={title} intro={intro} />;
    case "code":
      return <CodeStep step={step} goTo={goTo} />;
    case "recovery-code":
      return <RecoveryCodeStep step={step} goTo={goTo} />;
    case "removal":
      return <RemovalStep step={step} goTo={goTo} />;
    case "removal-sent":
      return <RemovalSentStep step={step} goTo={goTo} />;
    case "sign-up":
      return <SignUpStep step={step} goTo={goTo} />;
    case "email-confirmation":
      return <EmailConfirmationStep step={step} goTo={goTo} />;
    case "password-link-sent":
      return <PasswordLinkSentStep step={step} goTo={goTo} />;
    case "forgot-password":
      return <ForgotPasswordStep step={step} goTo={goTo} />;
    case "reset-link-sent":
      return <ResetLinkSentStep step={step} goTo={goTo} />;
  }
}
