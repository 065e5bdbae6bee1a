/** The fields of forms, each with its label, its hint and its error message. */
import { Field } from "@base-ui/react/field";
import { useId, type ComponentProps, type ReactElement, type ReactNode } from "react";
import { PASSWORD_MIN_CHARS } from "../../../protocol/limits.ts";

interface Labels {
  /** The field's name in the API: errors that the API reports for it are shown at this field. */
  name: string;
  label: string;
  hint?: ReactNode;
}

interface LabeledFieldProps extends Labels {
  children: ReactElement;
  minLength?: number | undefined;
}

function LabeledField({ name, label, hint, minLength, children }: LabeledFieldProps) {
  return (
    <Field.Root name={name} className="field">
      <Field.Label>{label}</Field.Label>
      {children}
      <Field.Validity>
        {({ validity: { tooShort } }) => (
          <>
            {hint !== undefined && !tooShort && (
              <Field.Description className="hint">{hint}</Field.Description>
            )}
            {tooShort ? (
              <Field.Error className="error">Use at least {minLength} characters.</Field.Error>
            ) : (
              <Field.Error className="error" />
            )}
          </>
        )}
      </Field.Validity>
    </Field.Root>
  );
}

type TextFieldProps = Labels & Omit<ComponentProps<"input">, "name">;

/** A required text field, unless `required` is false. */
export function TextField({ name, label, hint, ...rest }: TextFieldProps) {
  return (
    <LabeledField name={name} label={label} hint={hint} minLength={rest.minLength}>
      <Field.Control required {...rest} />
    </LabeledField>
  );
}

interface SelectFieldProps extends Labels {
  options: readonly (string | { value: string; label: string })[];
  chosen?: string;
  /** Receives each choice of the user. */
  onChoose?: (value: string) => void;
}

export function SelectField(props: SelectFieldProps) {
  const { name, label, hint, options, chosen, onChoose } = props;
  const labeled = options.map((option) =>
    typeof option === "string" ? { value: option, label: option } : option,
  );
  return (
    <LabeledField name={name} label={label} hint={hint}>
      <Field.Control
        defaultValue={chosen ?? labeled[0]?.value ?? ""}
        onValueChange={onChoose}
        render={
          <select>
            {labeled.map(({ value, label: text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        }
      />
    </LabeledField>
  );
}

interface Choice<Value extends string> {
  value: Value;
  title: ReactNode;
  about?: ReactNode;
}

interface ChoiceFieldProps<Value extends string> {
  name: string;
  label: string;
  choices: readonly Choice<Value>[];
  chosen: Value;
  onChoose?: (value: Value) => void;
}

/** A few choices that need more than a word each, as radio buttons. */
export function ChoiceField<Value extends string>(props: ChoiceFieldProps<Value>) {
  const { name, label, choices, chosen, onChoose } = props;
  const id = useId();
  return (
    <fieldset className="choices">
      <legend>{label}</legend>
      {choices.map(({ value, title, about }) => (
        <label key={value}>
          <input
            type="radio"
            name={name}
            value={value}
            defaultChecked={value === chosen}
            aria-labelledby={`${id}-${value}`}
            aria-describedby={about === undefined ? undefined : `${id}-${value}-about`}
            onChange={() => onChoose?.(value)}
          />
          <span>
            <span id={`${id}-${value}`}>{title}</span>
            {about !== undefined && (
              <span className="hint" id={`${id}-${value}-about`}>
                {about}
              </span>
            )}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

type TextAreaFieldProps = Labels & Omit<ComponentProps<"textarea">, "name">;

/** A required text of several lines, unless `required` is false. */
export function TextAreaField({ name, label, hint, defaultValue, ...rest }: TextAreaFieldProps) {
  return (
    <LabeledField name={name} label={label} hint={hint}>
      <Field.Control defaultValue={defaultValue} render={<textarea required {...rest} />} />
    </LabeledField>
  );
}

type CheckFieldProps = Labels & Omit<ComponentProps<"input">, "name" | "type">;

/** A checkbox. Its value in the form is `on` when it is checked, and empty otherwise. */
export function CheckField({ name, label, hint, ...rest }: CheckFieldProps) {
  const id = useId();
  return (
    <div className="field check">
      <input type="checkbox" id={id} name={name} aria-describedby={`${id}-hint`} {...rest} />
      <label htmlFor={id}>{label}</label>
      {hint !== undefined && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface EmailFieldProps {
  email?: string;
  /** Receives the address while the user types. */
  onType?: (email: string) => void;
}

export function EmailField({ email = "", onType }: EmailFieldProps) {
  return (
    <TextField
      name="email"
      label="Email address"
      type="email"
      autoComplete="username"
      defaultValue={email}
      onChange={(event) => onType?.(event.currentTarget.value)}
    />
  );
}

export function PasswordField({ label }: { label: string }) {
  return (
    <TextField name="password" label={label} type="password" autoComplete="current-password" />
  );
}

export function NewPasswordField({ name, label }: { name: string; label: string }) {
  return (
    <TextField
      name={name}
      label={label}
      type="password"
      autoComplete="new-password"
      minLength={PASSWORD_MIN_CHARS}
      hint={`Use at least ${PASSWORD_MIN_CHARS} characters. A few random words work well.`}
    />
  );
}

export function RecoveryCodeField() {
  return (
    <TextField
      name="recovery_code"
      label="Recovery code"
      className="code"
      autoComplete="off"
      spellCheck={false}
    />
  );
}

/** Accepts the code in both forms in which apps show it: six digits, or three and three. */
export function CodeField({ label }: { label: string }) {
  return (
    <TextField
      name="code"
      label={label}
      className="code"
      inputMode="numeric"
      autoComplete="one-time-code"
      pattern="\s*\d{3}\s?\d{3}\s*"
      title="6 digits"
    />
  );
}

export function removeSpaces(text: string): string {
  return text.replaceAll(/\s/g, "");
}
