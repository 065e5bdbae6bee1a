/** The text of a traffic policy in JSON, and its actions as the form edits them. */
import type { PolicyAction, TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";

/** An action while the user edits it: any of its fields can be missing or invalid. */
export interface EditedAction {
  kind: string;
  [field: string]: unknown;
}

export interface EditedPolicy {
  actions: EditedAction[];
}

/** `isJson`: the text is JSON, but not a policy that the form can show. */
type ParsedText = { policy: EditedPolicy } | { policy: null; isJson: boolean };

export function formatPolicy(policy: TrafficPolicy | EditedPolicy | null): string {
  return JSON.stringify(policy ?? { actions: [] }, null, 2);
}

export function parsePolicy(text: string): ParsedText {
  try {
    const value: unknown = JSON.parse(text);
    return isPolicy(value) ? { policy: value } : { policy: null, isJson: true };
  } catch {
    return { policy: null, isJson: false };
  }
}

function isPolicy(value: unknown): value is EditedPolicy {
  return isObject(value) && Array.isArray(value["actions"]) && value["actions"].every(isAction);
}

function isAction(value: unknown): value is EditedAction {
  return isObject(value) && typeof value["kind"] === "string";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const ACTION_TITLES: Record<PolicyAction["kind"], string> = {
  deny: "Deny a path",
  jwt_validation: "Require a token (JWT)",
  rate_limit: "Limit the rate",
  header_set: "Set a header",
};

export const ACTION_KINDS = Object.keys(ACTION_TITLES) as PolicyAction["kind"][];

/** A policy can have only one of each. */
const SINGLE_KINDS: readonly string[] = [
  "jwt_validation",
  "rate_limit",
] satisfies PolicyAction["kind"][];

export function canAdd(actions: readonly EditedAction[], kind: string): boolean {
  return !SINGLE_KINDS.includes(kind) || actions.every((action) => action.kind !== kind);
}

const NEW_ACTIONS: Record<PolicyAction["kind"], EditedAction> = {
  deny: { kind: "deny", path_prefix: "/" },
  jwt_validation: { kind: "jwt_validation" },
  rate_limit: { kind: "rate_limit", requests_per_minute: 60, per_client_ip: true },
  header_set: { kind: "header_set", name: "", value: "" },
};

export function createAction(kind: PolicyAction["kind"]): EditedAction {
  return { ...NEW_ACTIONS[kind] };
}

/** Adds those that are not in the policy yet, and that it can have once more. */
export function addActions(
  { actions }: EditedPolicy,
  added: readonly EditedAction[],
): EditedAction[] {
  const all = [...actions];
  for (const action of added) {
    const isPresent = all.some((other) => JSON.stringify(other) === JSON.stringify(action));
    if (!isPresent && canAdd(all, action.kind)) all.push(action);
  }
  return all;
}

/** One line for lists: `Deny /admin`. */
export function describeAction(action: EditedAction): string {
  const { kind, path_prefix: prefix, name, value, requests_per_minute: perMinute } = action;
  switch (kind) {
    case "deny":
      return `Deny ${formatValue(prefix)}`;
    case "jwt_validation":
      return "Require a token";
    case "rate_limit":
      return `At most ${formatValue(perMinute)} a minute${action["per_client_ip"] === true ? " for each visitor" : ""}`;
    case "header_set":
      return `Set ${formatValue(name)}: ${formatValue(value)}`;
    default:
      return kind;
  }
}

/** What a field shows for a value that may be of any type. */
export function formatValue(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
