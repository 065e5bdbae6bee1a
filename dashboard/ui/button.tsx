/** Buttons. One that starts a request is disabled and marked as busy until the response has arrived. */
import { useState, type ComponentProps } from "react";
import { notifyOfError } from "./feedback/notifications.tsx";

export type ButtonKind = "primary" | "plain" | "danger" | "quiet" | "link";

export interface ButtonProps extends ComponentProps<"button"> {
  kind?: ButtonKind;
  isBusy?: boolean;
}

export function Button({ kind = "plain", isBusy = false, className, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      disabled={isBusy}
      aria-busy={isBusy || undefined}
      {...rest}
      className={className === undefined ? kind : `${kind} ${className}`}
    />
  );
}

export interface ActionButtonProps extends Omit<ButtonProps, "onClick" | "isBusy"> {
  /** An error is shown as a notification. */
  action: () => Promise<unknown>;
}

/** A button that runs an action at once. */
export function ActionButton({ action, ...rest }: ActionButtonProps) {
  const [isBusy, setBusy] = useState(false);
  async function run(): Promise<void> {
    setBusy(true);
    await action().catch(notifyOfError);
    setBusy(false);
  }
  return <Button {...rest} isBusy={isBusy} onClick={() => void run()} />;
}
