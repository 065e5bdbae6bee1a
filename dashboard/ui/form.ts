/** A form: labelled fields, a submit button, and error messages beside the fields that they are about. */
import { PASSWORD_MIN_CHARS } from "../../protocol/limits.ts";
import { h, runWhileBusy, type Attributes, type Child } from "./element.ts";
import { RequestError, getErrorMessage } from "../request.ts";

export interface Field {
  /** The field's name in the API: errors that the API reports for it are shown at this field. */
  name: string;
  element: HTMLElement;
  control: HTMLInputElement | HTMLSelectElement;
  showError: (message: string) => void;
}

export interface FormOptions {
  fields?: Field[];
  submit: string;
  /** Shown beside the submit button. */
  beside?: Child[];
  kind?: "primary" | "plain" | "danger";
  act: (value: (name: string) => string) => Promise<void>;
}

export function createTextField(
  name: string,
  label: string,
  { hint = "", ...attributes }: Attributes & { hint?: string } = {},
): Field {
  return createField(name, label, h("input", { required: true, ...attributes }), hint);
}

export function createEmailField(value = ""): Field {
  return createTextField("email", "Email address", {
    type: "email",
    autocomplete: "username",
    value,
  });
}

export function createPasswordField(label: string): Field {
  return createTextField("password", label, { type: "password", autocomplete: "current-password" });
}

export function createNewPasswordField(name: string, label: string): Field {
  return createTextField(name, label, {
    type: "password",
    autocomplete: "new-password",
    minlength: String(PASSWORD_MIN_CHARS),
    hint: `At least ${PASSWORD_MIN_CHARS} characters. A few random words work well.`,
  });
}

export function createRecoveryCodeField(): Field {
  const attributes = { class: "code", autocomplete: "off", spellcheck: "false" };
  return createTextField("recovery_code", "Recovery code", attributes);
}

/** Accepts the code in both forms in which apps show it: six digits, or three and three. */
export function createCodeField(label: string): Field {
  return createTextField("code", label, {
    class: "code",
    inputmode: "numeric",
    autocomplete: "one-time-code",
    pattern: "\\s*\\d{3}\\s?\\d{3}\\s*",
    title: "6 digits",
  });
}

export function removeSpaces(text: string): string {
  return text.replaceAll(/\s/g, "");
}

export function createSelectField(
  name: string,
  label: string,
  options: readonly string[],
  chosen = "",
) {
  const select = h("select");
  for (const option of options) {
    select.append(h("option", { value: option, selected: option === chosen }, option));
  }
  return createField(name, label, select, "");
}

let lastId = 0;

function createField(name: string, label: string, control: Field["control"], hint: string): Field {
  const id = `field-${(lastId += 1)}`;
  const error = h("p", { id: `${id}-error`, class: "error" });
  const description = h("p", { id: `${id}-hint`, class: "hint" }, hint);
  control.id = id;
  control.name = name;
  control.setAttribute("aria-describedby", hint ? `${description.id} ${error.id}` : error.id);
  const parts = [h("label", { for: id }, label), control, ...(hint ? [description] : []), error];
  return {
    name,
    control,
    element: h("div", { class: "field" }, ...parts),
    showError(message) {
      error.textContent = message;
      control.setAttribute("aria-invalid", String(message !== ""));
    },
  };
}

export function createForm({
  fields = [],
  submit,
  beside = [],
  kind = "primary",
  act,
}: FormOptions) {
  const submitButton = h("button", { class: kind }, submit);
  const alert = h("p", { role: "alert" });
  const element = h(
    "form",
    {},
    ...fields.map((field) => field.element),
    alert,
    h("div", { class: "actions" }, submitButton, ...beside),
  );
  const value = (name: string) => fields.find((field) => field.name === name)?.control.value ?? "";

  async function run(): Promise<void> {
    alert.textContent = "";
    for (const field of fields) field.showError("");
    try {
      await runWhileBusy(submitButton, () => act(value));
    } catch (error) {
      alert.textContent = showFieldErrors(error, fields);
    }
  }
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    void run();
  });
  return element;
}

/** Shows an error at the fields that it is about. @returns the message for the form, empty when a field shows one. */
function showFieldErrors(error: unknown, fields: Field[]): string {
  if (!(error instanceof RequestError)) return getErrorMessage(error);
  const invalid = fields.filter(({ name }) => error.fields.some(({ path }) => path === name));
  for (const field of invalid) {
    const { message = "" } = error.fields.find(({ path }) => path === field.name) ?? {};
    // The API's messages follow a name, as in "must be a number". A message with a capital letter is a whole sentence.
    field.showError(/^[a-z]/.test(message) ? `It ${message}.` : message);
  }
  invalid[0]?.control.focus();
  return invalid.length > 0 ? "" : getErrorMessage(error);
}
