/** A form: labeled fields, a submit button, and error messages beside the fields that they are about. */
import { Form as BaseForm } from "@base-ui/react/form";
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { getUserMessage, RequestError } from "../../api/request.ts";
import { Button, type ButtonKind } from "../button.tsx";
import { notifyOfError } from "../feedback/notifications.tsx";
import { UpgradeHint } from "../feedback/upgrade-hint.tsx";

/** The text of a field; empty when the form has no such field. */
export type GetValue = (name: string) => string;

export interface FormProps {
  /** The text of the submit button. */
  submit: string;
  /** How the submit button looks. */
  kind?: ButtonKind;
  /** Shown beside the submit button. */
  beside?: ReactNode;
  children?: ReactNode;
  /** An error is shown at the fields that it names, or else above the submit button. */
  onSubmit: (value: GetValue) => Promise<unknown>;
}

export function Form({ submit, kind = "primary", beside, children, onSubmit }: FormProps) {
  const [isBusy, setBusy] = useState(false);
  const [alert, setAlert] = useState<{ message: string; error: unknown } | null>(null);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const form = useRef<HTMLFormElement>(null);

  useEffect(() => {
    const [name] = Object.keys(errors);
    const field = name === undefined ? null : form.current?.elements.namedItem(name);
    if (field instanceof HTMLElement) field.focus();
  }, [errors]);

  async function run(element: HTMLFormElement): Promise<void> {
    const data = new FormData(element);
    setBusy(true);
    setAlert(null);
    setErrors({});
    try {
      await onSubmit((name) => {
        const value = data.get(name);
        return typeof value === "string" ? value : "";
      });
    } catch (error) {
      // The user has closed the dialog meanwhile.
      if (!element.isConnected) return notifyOfError(error);
      const found = findFieldErrors(error, element);
      setErrors(found);
      if (Object.keys(found).length === 0) {
        setAlert({ message: getUserMessage(error), error });
      }
    }
    setBusy(false);
  }

  function handleSubmit(event: FormEvent<HTMLFormElement>): void {
    event.preventDefault();
    void run(event.currentTarget);
  }
  return (
    <BaseForm ref={form} errors={errors} onSubmit={handleSubmit}>
      {children}
      {alert !== null && (
        <p role="alert">
          {alert.message}
          <UpgradeHint error={alert.error} />
        </p>
      )}
      <div className="actions">
        <Button type="submit" kind={kind} isBusy={isBusy}>
          {submit}
        </Button>
        {beside}
      </div>
    </BaseForm>
  );
}

/** By the name of the field, those that the form has. An error in an entry of a list belongs to the list's field. */
function findFieldErrors(error: unknown, form: HTMLFormElement): Record<string, string> {
  if (!(error instanceof RequestError)) return {};
  const found = error.fields.flatMap(({ path, message }) => {
    const names = [path, path.replace(/\[\d+\]$/, "")];
    const name = names.find((each) => form.elements.namedItem(each) !== null);
    return name === undefined ? [] : [[name, toSentence(message)]];
  });
  return Object.fromEntries(found) as Record<string, string>;
}

/** The API's messages follow a name, as in "must be a number". A message with a capital letter is a whole sentence. */
function toSentence(message: string): string {
  return /^[a-z]/.test(message) ? `It ${message}.` : message;
}
