/** Modal dialogs. One with a form closes when the user cancels it, or when the action of the form has succeeded. */
import { Dialog as BaseDialog } from "@base-ui/react/dialog";
import { useRef, useState, type ReactNode, type RefObject } from "react";
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { Button, type ButtonProps } from "../button.tsx";
import { TextField } from "./fields.tsx";
import { Form, type FormProps } from "./form.tsx";

interface OpenDialogProps {
  isOpen: boolean;
  onClose: () => void;
  title: string;
  width?: "normal" | "wide";
  /** Only its buttons close the dialog, because what it shows can't be shown again. */
  isShownOnce?: boolean;
  /** Whether Escape, or a click beside the dialog, closes it although something has been typed. By default it asks first. */
  isTextDisposable?: boolean;
  /** What has the focus at first, if it is not the first control. */
  initialFocus?: RefObject<HTMLElement | null> | "title" | undefined;
  children: ReactNode;
}

/** A dialog that its parent opens. */
export function OpenDialog(props: OpenDialogProps) {
  const { isOpen, onClose, title, width = "normal", isShownOnce = false } = props;
  const { isTextDisposable = false, initialFocus, children } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  const [isAsking, setAsking] = useState(false);
  const typed = useRef(new Set<TextControl>());

  function discard(): void {
    setAsking(false);
    onClose();
  }

  function handleDismissal(): void {
    if (isShownOnce) return;
    if (!isTextDisposable && hasText(typed.current)) setAsking(true);
    else onClose();
  }
  return (
    <BaseDialog.Root
      open={isOpen}
      onOpenChange={(open) => !open && handleDismissal()}
      disablePointerDismissal={isShownOnce}
    >
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className="backdrop" />
        <BaseDialog.Popup
          className={`dialog ${width}`}
          initialFocus={initialFocus === "title" ? heading : initialFocus}
          onInput={({ target }) => isTextControl(target) && typed.current.add(target)}
        >
          <BaseDialog.Title ref={heading} tabIndex={initialFocus === "title" ? -1 : undefined}>
            {title}
          </BaseDialog.Title>
          {children}
          <DiscardDialog isOpen={isAsking} onKeep={() => setAsking(false)} onDiscard={discard} />
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}

type TextControl = HTMLInputElement | HTMLTextAreaElement;

function isTextControl(target: EventTarget): target is TextControl {
  if (target instanceof HTMLTextAreaElement) return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio"].includes(target.type);
}

/** Whether text that was typed would be lost. Fields that are no longer shown belong to an earlier form. */
function hasText(typed: ReadonlySet<TextControl>): boolean {
  return [...typed].some(({ isConnected, value }) => isConnected && value.trim() !== "");
}

interface DiscardDialogProps {
  isOpen: boolean;
  onKeep: () => void;
  onDiscard: () => void;
}

/** Above a dialog in which something has been typed. */
function DiscardDialog({ isOpen, onKeep, onDiscard }: DiscardDialogProps) {
  const keep = useRef<HTMLButtonElement>(null);
  return (
    <BaseDialog.Root open={isOpen} onOpenChange={(open) => !open && onKeep()}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className="backdrop" forceRender />
        <BaseDialog.Popup className="dialog normal" initialFocus={keep}>
          <BaseDialog.Title>Discard what you typed?</BaseDialog.Title>
          <div className="actions">
            <Button ref={keep} onClick={onKeep}>
              Keep editing
            </Button>
            <Button kind="danger" onClick={onDiscard}>
              Discard
            </Button>
          </div>
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}

interface CancelButton {
  /** The label of the button that closes the dialog without the action. */
  cancel?: string;
  /** This button has the focus at first. */
  isCancelFocused?: boolean;
}

type OpenFormDialogProps = Omit<FormProps, "beside"> &
  Pick<OpenDialogProps, "isOpen" | "onClose" | "title" | "width"> &
  CancelButton;

/** A dialog that its parent opens, such as from an item of a menu. */
export function OpenFormDialog(props: OpenFormDialogProps) {
  const { isOpen, onClose, title, width = "normal", ...others } = props;
  const { cancel = "Cancel", isCancelFocused = false, ...form } = others;
  const cancelButton = useRef<HTMLButtonElement>(null);
  const initialFocus = isCancelFocused ? cancelButton : undefined;
  return (
    <OpenDialog
      {...{ isOpen, onClose, title, width, initialFocus }}
      isTextDisposable={form.kind === "danger"}
    >
      <Form
        {...form}
        beside={
          <Button ref={cancelButton} onClick={onClose}>
            {cancel}
          </Button>
        }
        onSubmit={async (value) => {
          await form.onSubmit(value);
          onClose();
        }}
      />
    </OpenDialog>
  );
}

interface DialogButtonProps extends Omit<FormProps, "beside">, CancelButton {
  /** The button that opens the dialog. */
  button: ButtonProps;
  title: string;
  /** The dialog is open while the page's URL has `?dialog=` with this name, so that it can be linked to. */
  link?: string;
}

/** A button that opens a dialog with a form. */
export function DialogButton({ button, link, ...rest }: DialogButtonProps) {
  const [isPressed, setPressed] = useState(false);
  const { dialog } = useQueryParameters();
  const setParameters = useSetQueryParameters();
  const isLinked = link !== undefined && dialog === link;
  function close(): void {
    setPressed(false);
    if (isLinked) setParameters({ dialog: "" });
  }
  return (
    <>
      <Button {...button} onClick={() => setPressed(true)} />
      <OpenFormDialog {...rest} isOpen={isPressed || isLinked} onClose={close} />
    </>
  );
}

interface ConfirmedName {
  /**
   * A name that the user must type, for an action that can't be undone. Without one the focus is on the button that cancels,
   * so that pressing Enter twice does not confirm.
   */
  name?: string | undefined;
}

type ConfirmButtonProps = Omit<DialogButtonProps, "kind" | "isCancelFocused"> & ConfirmedName;

/** A button whose action is confirmed first. */
export function ConfirmButton({ name, children, ...rest }: ConfirmButtonProps) {
  return (
    <DialogButton {...rest} kind="danger" isCancelFocused={name === undefined}>
      {children}
      {name !== undefined && <ConfirmNameField name={name} />}
    </DialogButton>
  );
}

type OpenConfirmDialogProps = Omit<OpenFormDialogProps, "kind" | "isCancelFocused"> & ConfirmedName;

/** The same as a dialog that its parent opens, such as from an item of a menu. */
export function OpenConfirmDialog({ name, children, ...rest }: OpenConfirmDialogProps) {
  return (
    <OpenFormDialog {...rest} kind="danger" isCancelFocused={name === undefined}>
      {children}
      {name !== undefined && <ConfirmNameField name={name} />}
    </OpenFormDialog>
  );
}

/** The browser does not submit the form before the pattern matches. It refuses escapes that the pattern does not need. */
function ConfirmNameField({ name }: { name: string }) {
  const pattern = name.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  return (
    <TextField
      name="confirmed_name"
      label={`Type ${name} to confirm`}
      pattern={`\\s*${pattern}\\s*`}
      title={name}
      autoComplete="off"
      spellCheck={false}
    />
  );
}
