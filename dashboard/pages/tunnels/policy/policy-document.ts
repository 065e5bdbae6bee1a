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

/** The rate limit of new rules, of templates and of suggestions. */
export const DEFAULT_REQUESTS_PER_MINUTE = 60;

interface ActionKind {
  title: string;
  /** The fields of a new action. */
  initial: Omit<EditedAction, "kind">;
  /** What it does to some requests. */
  effect: "refused" | "changed";
  /** A policy can have only one of this kind. */
  isSingle?: true;
  /** One line for lists: `Deny /admin`. */
  describe(action: EditedAction): string;
}

const KINDS: Record<PolicyAction["kind"], ActionKind> = {
  deny: {
    title: "Deny a path",
    initial: { path_prefix: "/" },
    effect: "refused",
    describe: ({ path_prefix: prefix }) => `Deny ${formatValue(prefix)}`,
  },
  jwt_validation: {
    title: "Require a token (JWT)",
    initial: {},
    effect: "refused",
    isSingle: true,
    describe: () => "Require a token",
  },
  rate_limit: {
    title: "Limit the rate",
    initial: { requests_per_minute: DEFAULT_REQUESTS_PER_MINUTE, per_client_ip: true },
    effect: "refused",
    isSingle: true,
    describe: ({ requests_per_minute: perMinute, per_client_ip: isPerVisitor }) =>
      `At most ${formatValue(perMinute)} a minute${isPerVisitor === true ? " for each visitor" : ""}`,
  },
  header_set: {
    title: "Set a header",
    initial: { name: "", value: "" },
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

/** Adds the actions that the policy does not have yet, except a second one of a kind that it can have only once. */
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
  return findActionKind(action.kind)?.describe(action) ?? action.kind;
}

/** What a field shows for a value that may be of any type. */
export function formatValue(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
