/** The fields of one action of a traffic policy. They have the names under which the API reports errors. */
import { useState } from "react";
import type { PolicyAction } from "../../../../protocol/schemas/access/policies.ts";
import { CheckField, TextAreaField, TextField } from "../../../ui/forms/fields.tsx";
import { parseLines } from "../../../ui/forms/lines.ts";
import { formatValue, type EditedAction } from "./policy-document.ts";

const DENY_HINT =
  "Every path that begins with this prefix gets 403 Forbidden, in any encoding and letter case.";

export interface ActionFieldsProps {
  action: EditedAction;
  /** The position of the action in the policy. */
  index: number;
  /** Only the first action of its kind shows the explanation of the kind. */
  isFirstOfKind: boolean;
  onChange: (action: EditedAction) => void;
}

export function ActionFields(props: ActionFieldsProps) {
  switch (props.action.kind as PolicyAction["kind"]) {
    case "deny":
      return (
        <TextValue
          {...props}
          field="path_prefix"
          label="Path"
          placeholder="/admin"
          {...(props.isFirstOfKind && { hint: DENY_HINT })}
        />
      );
    case "header_set":
      return (
        <div className="policy-pair">
          <TextValue {...props} field="name" label="Header" placeholder="X-Team" />
          <TextValue {...props} field="value" label="Value" placeholder="blue" />
        </div>
      );
    case "rate_limit":
      return <RateLimitFields {...props} />;
    case "jwt_validation":
      return <TokenFields {...props} />;
    default:
      return <p className="hint">This kind of rule can only be edited as JSON.</p>;
  }
}

interface ValueProps extends ActionFieldsProps {
  field: string;
  label: string;
  hint?: string;
  placeholder?: string;
}

function TextValue(props: ValueProps) {
  const { action, index, onChange, field, isFirstOfKind: _, ...labels } = props;
  return (
    <TextField
      {...labels}
      name={toFieldName(index, field)}
      value={formatValue(action[field])}
      required={false}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange({ ...action, [field]: event.currentTarget.value })}
    />
  );
}

function RateLimitFields({ action, index, onChange }: ActionFieldsProps) {
  return (
    <>
      <TextField
        name={toFieldName(index, "requests_per_minute")}
        label="Requests a minute"
        inputMode="numeric"
        className="policy-number"
        autoComplete="off"
        required={false}
        value={formatValue(action["requests_per_minute"])}
        hint="Further requests in the same minute get 429 Too Many Requests."
        onChange={(event) =>
          onChange({ ...action, requests_per_minute: parseCount(event.currentTarget.value) })
        }
      />
      <CheckField
        name={toFieldName(index, "per_client_ip")}
        label="Count each visitor separately"
        hint="By IP address. Otherwise all visitors share one limit."
        checked={action["per_client_ip"] === true}
        onChange={(event) => onChange({ ...action, per_client_ip: event.currentTarget.checked })}
      />
    </>
  );
}

function TokenFields(props: ActionFieldsProps) {
  const { action, index, onChange } = props;
  return (
    <>
      <div className="policy-pair">
        <ListValue
          {...props}
          field="allowed_issuers"
          label="Issuers"
          placeholder="https://idp.example.com"
          hint="One URL per line. Empty: visitor tokens that members minted for this tunnel."
        />
        <ListValue
          {...props}
          field="allowed_audiences"
          label="Audiences"
          placeholder="my-api"
          hint="One per line; a token needs one of them. Empty: any audience."
        />
      </div>
      <CheckField
        name={toFieldName(index, "forward_token")}
        label="Forward the token to the local server"
        hint="Otherwise the Authorization header is removed."
        checked={action["forward_token"] === true}
        onChange={(event) => onChange({ ...action, forward_token: event.currentTarget.checked })}
      />
    </>
  );
}

/** An empty list is left out of the policy. */
function ListValue(props: ValueProps) {
  const { action, index, onChange, field, isFirstOfKind: _, ...labels } = props;
  const value = action[field];
  const entries = Array.isArray(value) ? value.map(formatValue) : [];
  const [typed, setTyped] = useState("");
  // The typed text can have empty lines, which the entries don't have.
  const isTyped = parseLines(typed).join("\n") === entries.join("\n");
  return (
    <TextAreaField
      {...labels}
      name={toFieldName(index, field)}
      className="code-area"
      rows={2}
      required={false}
      spellCheck={false}
      value={isTyped ? typed : entries.join("\n")}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        const lines = parseLines(event.currentTarget.value);
        onChange({ ...action, [field]: lines.length === 0 ? undefined : lines });
      }}
    />
  );
}

function toFieldName(index: number, field: string): string {
  return `actions[${index}].${field}`;
}

/** The API explains what is wrong with a text that is not a number. */
function parseCount(text: string): number | string {
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : text;
}
