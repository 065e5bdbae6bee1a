/** The fields of one action of a traffic policy, as `action-kinds.ts` lists them. */
import { useState } from "react";
import { CheckField, TextAreaField, TextField } from "../../../ui/forms/fields.tsx";
import { parseLines } from "../../../ui/forms/lines.ts";
import {
  findActionKind,
  formatValue,
  type ActionField,
  type EditedAction,
} from "./action-kinds.ts";

interface ActionFieldsProps {
  action: EditedAction;
  /** The position of the action in the policy. */
  index: number;
  /** Only the first action of its kind shows hints. */
  isFirstOfKind: boolean;
  onChange: (action: EditedAction) => void;
}

export function ActionFields({ action, index, isFirstOfKind, onChange }: ActionFieldsProps) {
  const kind = findActionKind(action.kind);
  if (!kind) return <p className="hint">This kind of rule can only be edited as JSON.</p>;
  return kind.fields.map((row) => {
    const fields = row.map(({ hint, ...field }) => (
      <Field
        key={field.name}
        field={isFirstOfKind && hint !== undefined ? { ...field, hint } : field}
        // The API reports errors under this name.
        name={`actions[${index}].${field.name}`}
        value={action[field.name]}
        onChange={(value) => onChange({ ...action, [field.name]: value })}
      />
    ));
    return row.length === 1 ? (
      fields
    ) : (
      <div key={row[0]?.name} className="policy-pair">
        {fields}
      </div>
    );
  });
}

interface FieldProps {
  field: ActionField;
  name: string;
  value: unknown;
  onChange: (value: unknown) => void;
}

function Field(props: FieldProps) {
  const { field, name, value, onChange } = props;
  const { name: _, control, ...labels } = field;
  switch (control) {
    case "text":
      return (
        <TextField
          {...labels}
          name={name}
          value={formatValue(value)}
          required={false}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case "number":
      return (
        <TextField
          {...labels}
          name={name}
          inputMode="numeric"
          className="policy-number"
          autoComplete="off"
          required={false}
          value={formatValue(value)}
          onChange={(event) => onChange(parseCount(event.currentTarget.value))}
        />
      );
    case "checkbox":
      return (
        <CheckField
          {...labels}
          name={name}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case "list":
      return <ListField {...props} />;
  }
}

function ListField({ field, name, value, onChange }: FieldProps) {
  const { name: _, control: __, ...labels } = field;
  const entries = Array.isArray(value) ? value.map(formatValue) : [];
  const [typed, setTyped] = useState("");
  // The typed text can have empty lines, which the entries don't have.
  const isTyped = parseLines(typed).join("\n") === entries.join("\n");
  return (
    <TextAreaField
      {...labels}
      name={name}
      className="code-area"
      rows={2}
      required={false}
      spellCheck={false}
      value={isTyped ? typed : entries.join("\n")}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        const lines = parseLines(event.currentTarget.value);
        onChange(lines.length === 0 ? undefined : lines);
      }}
    />
  );
}

/** The API explains why a text that is not a number is invalid. */
function parseCount(text: string): number | string {
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : text;
}
