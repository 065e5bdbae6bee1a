/** The steps of signing in, and the data that each step needs from the one before. */
export type SignInStep =
  | { name: "password"; email?: string; notice?: string }
  | { name: "code"; challenge: string }
  | { name: "recovery-code"; challenge: string }
  | { name: "removal"; challenge: string }
  | { name: "removal-sent" }
  | { name: "sign-up"; email: string }
  | { name: "email-confirmation"; email: string; password: string }
  | { name: "password-link-sent"; email: string }
  | { name: "forgot-password"; email: string }
  | { name: "reset-link-sent"; email: string };

/** The properties of the component that shows a step. */
export interface StepProps<Name extends SignInStep["name"]> {
  step: Extract<SignInStep, { name: Name }>;
  goTo: (step: SignInStep) => void;
}
