/**
 * The kinds of actions of a traffic policy, one row for each: the form, the list of rules and the dry run derive from it.
 * An action without a row can only be edited as JSON.
 */
import type { PolicyAction } from "../../../../protocol/schemas/access/policies.ts";

/** An action while the user edits it: any of its fields can be missing or invalid. */
export interface EditedAction {
  kind: string;
  [field: string]: unknown;
}

export interface ActionField {
  /** The field of the action, under whose name the API reports errors. */
  name: string;
  /** A `list` has one entry per line, and is left out of the policy while it is empty. */
  control: "text" | "number" | "checkbox" | "list";
  label: string;
  placeholder?: string;
  hint?: string;
}

interface ActionKind {
  title: string;
  /** The fields of a new action. */
  initial: Omit<EditedAction, "kind">;
  /** The rows of the form. Fields of one row are side by side. */
  fields: ActionField[][];
  /** Whether the requests to which it applies are refused or changed. */
  effect: "refused" | "changed";
  /** A policy can have only one of this kind. */
  isSingle?: true;
  /** One line for lists: `Deny /admin`. */
  describe(action: EditedAction): string;
}

/** The rate limit of new rules, of templates and of suggestions. */
export const DEFAULT_REQUESTS_PER_MINUTE = 60;

const KINDS: Record<PolicyAction["kind"], ActionKind> = {
  deny: {
    title: "Deny a path",
    initial: { path_prefix: "/" },
    fields: [
      [
        {
          name: "path_prefix",
          control: "text",
          label: "Path",
          placeholder: "/admin",
          hint: "Every path that begins with this prefix gets 403 Forbidden, in any encoding and letter case.",
        },
      ],
    ],
    effect: "refused",
    describe: ({ path_prefix: prefix }) => `Deny ${formatValue(prefix)}`,
  },
  jwt_validation: {
    title: "Require a token (JWT)",
    initial: {},
    fields: [
      [
        {
          name: "allowed_issuers",
          control: "list",
          label: "Issuers",
          placeholder: "https://idp.example.com",
          hint: "One URL per line. Leave empty to accept the visitor tokens that members minted for this tunnel.",
        },
        {
          name: "allowed_audiences",
          control: "list",
          label: "Audiences",
          placeholder: "my-api",
          hint: "One per line; a token needs one of them. Leave empty for any audience.",
        },
      ],
      [
        {
          name: "forward_token",
          control: "checkbox",
          label: "Forward the token to the local server",
          hint: "Otherwise the Authorization header is removed.",
        },
      ],
    ],
    effect: "refused",
    isSingle: true,
    describe: () => "Require a token",
  },
  rate_limit: {
    title: "Limit the rate",
    initial: { requests_per_minute: DEFAULT_REQUESTS_PER_MINUTE, per_client_ip: true },
    fields: [
      [
        {
          name: "requests_per_minute",
          control: "number",
          label: "Requests a minute",
          hint: "Further requests in the same minute get 429 Too Many Requests.",
        },
      ],
      [
        {
          name: "per_client_ip",
          control: "checkbox",
          label: "Count each visitor separately",
          hint: "By IP address. Otherwise all visitors share one limit.",
        },
      ],
    ],
    effect: "refused",
    isSingle: true,
    describe: ({ requests_per_minute: perMinute, per_client_ip: isPerVisitor }) =>
      `At most ${formatValue(perMinute)} a minute${isPerVisitor === true ? " for each visitor" : ""}`,
  },
  header_set: {
    title: "Set a header",
    initial: { name: "", value: "" },
    fields: [
      [
        { name: "name", control: "text", label: "Header", placeholder: "X-Team" },
        { name: "value", control: "text", label: "Value", placeholder: "blue" },
      ],
    ],
    effect: "changed",
    describe: ({ name, value }) => `Set ${formatValue(name)}: ${formatValue(value)}`,
  },
};

export const ACTION_KINDS = Object.keys(KINDS) as PolicyAction["kind"][];

/** @param kind may be one that this page does not know. */
export function findActionKind(kind: string): ActionKind | undefined {
  return (KINDS as Partial<Record<string, ActionKind>>)[kind];
}

export function canAdd(actions: readonly EditedAction[], kind: string): boolean {
  return !findActionKind(kind)?.isSingle || actions.every((action) => action.kind !== kind);
}

export function createAction(kind: PolicyAction["kind"]): EditedAction {
  return { kind, ...KINDS[kind].initial };
}

/** One line for lists: `Deny /admin`. */
export function describeAction(action: EditedAction): string {
  return findActionKind(action.kind)?.describe(action) ?? action.kind;
}

/** The text of a field for a value that may be of any type. */
export function formatValue(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
