/** Buttons. One that starts a request is disabled and marked as busy until the response has arrived. */
import {
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
  type ComponentProps,
  type MouseEvent,
} from "react";
import { notifyOfError } from "./feedback/notifications.tsx";
import { keepFocusNear } from "./focus/lost-focus.ts";

export type ButtonKind = "primary" | "plain" | "danger" | "quiet" | "link";

export interface ButtonProps extends ComponentProps<"button"> {
  kind?: ButtonKind;
  isBusy?: boolean;
  /** Nothing happens when it is pressed. Unlike one that is `disabled`, the button keeps the focus, or can get it back. */
  isUnavailable?: boolean;
}

export function Button(props: ButtonProps) {
  const { kind = "plain", isBusy = false, isUnavailable = false, ...others } = props;
  const { className, ref, onClick, ...rest } = others;
  const button = useRef<HTMLButtonElement>(null);
  useImperativeHandle(ref, () => button.current!);
  useLayoutEffect(() => {
    const { current } = button;
    return () => {
      if (current !== null && current === document.activeElement) keepFocusNear(current);
    };
  }, []);

  function handleClick(event: MouseEvent<HTMLButtonElement>): void {
    // Prevents the default too, because Enter in a field clicks the submit button of its form.
    if (isBusy || isUnavailable) event.preventDefault();
    else onClick?.(event);
  }
  return (
    <button
      type="button"
      // An element with the attribute `disabled` loses the focus.
      aria-disabled={isBusy || isUnavailable || undefined}
      aria-busy={isBusy || undefined}
      {...rest}
      ref={button}
      className={className === undefined ? kind : `${kind} ${className}`}
      onClick={handleClick}
    />
  );
}

interface ActionButtonProps extends Omit<ButtonProps, "onClick" | "isBusy"> {
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
