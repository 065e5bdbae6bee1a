/** A form: labelled fields, one button, and what is wrong said where it is wrong. */
import { PASSWORD_MIN_CHARS } from "../../protocol/limits.ts";
import { h, whileBusy, type Attributes, type Child } from "./element.ts";
import { RequestError, getErrorMessage } from "../request.ts";

export interface Field {
  /** As the API calls it: what it says is wrong with it is shown there. */
  name: string;
  element: HTMLElement;
  control: HTMLInputElement | HTMLSelectElement;
  complain: (message: string) => void;
}

export interface FormOptions {
  fields?: Field[];
  submit: string;
  /** Beside the button. */
  beside?: Child[];
  kind?: "primary" | "plain" | "danger";
  act: (value: (name: string) => string) => Promise<void>;
}

export function textField(
  name: string,
  label: string,
  { hint = "", ...attributes }: Attributes & { hint?: string } = {},
): Field {
  return labelled(name, label, h("input", { required: true, ...attributes }), hint);
}

export function emailField(value = ""): Field {
  return textField("email", "Email address", { type: "email", autocomplete: "username", value });
}

export function passwordField(label: string): Field {
  return textField("password", label, { type: "password", autocomplete: "current-password" });
}

export function newPasswordField(name: string, label: string): Field {
  return textField(name, label, {
    type: "password",
    autocomplete: "new-password",
    minlength: String(PASSWORD_MIN_CHARS),
    hint: `At least ${PASSWORD_MIN_CHARS} characters. A few random words work well.`,
  });
}

export function recoveryCodeField(): Field {
  const attributes = { class: "code", autocomplete: "off", spellcheck: "false" };
  return textField("recovery_code", "Recovery code", attributes);
}

/** As apps show it, in one piece or in two. */
export function codeField(label: string): Field {
  return textField("code", label, {
    class: "code",
    inputmode: "numeric",
    autocomplete: "one-time-code",
    pattern: "\\s*\\d{3}\\s?\\d{3}\\s*",
    title: "6 digits",
  });
}

export function digits(typed: string): string {
  return typed.replaceAll(/\s/g, "");
}

export function selectField(name: string, label: string, options: readonly string[], chosen = "") {
  const select = h("select");
  for (const option of options) {
    select.append(h("option", { value: option, selected: option === chosen }, option));
  }
  return labelled(name, label, select, "");
}

let ids = 0;

function labelled(name: string, label: string, control: Field["control"], hint: string): Field {
  const id = `field-${(ids += 1)}`;
  const fault = h("p", { id: `${id}-fault`, class: "fault" });
  const about = h("p", { id: `${id}-hint`, class: "hint" }, hint);
  control.id = id;
  control.name = name;
  control.setAttribute("aria-describedby", hint ? `${about.id} ${fault.id}` : fault.id);
  const parts = [h("label", { for: id }, label), control, ...(hint ? [about] : []), fault];
  return {
    name,
    control,
    element: h("div", { class: "field" }, ...parts),
    complain(message) {
      fault.textContent = message;
      control.setAttribute("aria-invalid", String(message !== ""));
    },
  };
}

export function form({ fields = [], submit, beside = [], kind = "primary", act }: FormOptions) {
  const send = h("button", { class: kind }, submit);
  const problem = h("p", { role: "alert" });
  const element = h(
    "form",
    {},
    ...fields.map((field) => field.element),
    problem,
    h("div", { class: "actions" }, send, ...beside),
  );
  const value = (name: string) => fields.find((field) => field.name === name)?.control.value ?? "";

  async function attempt(): Promise<void> {
    problem.textContent = "";
    for (const field of fields) field.complain("");
    try {
      await whileBusy(send, () => act(value));
    } catch (error) {
      problem.textContent = complainOf(error, fields);
    }
  }
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt();
  });
  return element;
}

/** @returns what is left to say of it, once the fields have said theirs. */
function complainOf(error: unknown, fields: Field[]): string {
  if (!(error instanceof RequestError)) return getErrorMessage(error);
  const faulty = fields.filter(({ name }) => error.fields.some(({ path }) => path === name));
  for (const field of faulty) {
    const { message = "" } = error.fields.find(({ path }) => path === field.name) ?? {};
    // Ours begin in lower case, as what follows a name; others are sentences of their own.
    field.complain(/^[a-z]/.test(message) ? `It ${message}.` : message);
  }
  faulty[0]?.control.focus();
  return faulty.length > 0 ? "" : getErrorMessage(error);
}
