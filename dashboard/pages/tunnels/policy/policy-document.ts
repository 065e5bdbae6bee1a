/** The text of a traffic policy in JSON, and its actions as the form edits them. */
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import { isJsonObject } from "../../../../shared/json.ts";
import { parseJsonTree, type JsonMistake } from "../../requests/decode/json/json.ts";
import { canAdd, type EditedAction } from "./action-kinds.ts";

export interface EditedPolicy {
  actions: EditedAction[];
}

/** Without a syntax error the text is JSON, but not a policy that the form can show. */
type ParsedText = { policy: EditedPolicy } | { policy: null; syntaxError: JsonMistake | null };

export function formatPolicy(policy: TrafficPolicy | EditedPolicy | null): string {
  return JSON.stringify(policy ?? { actions: [] }, null, 2);
}

export function parsePolicy(text: string): ParsedText {
  try {
    const value: unknown = JSON.parse(text);
    return isPolicy(value) ? { policy: value } : { policy: null, syntaxError: null };
  } catch {
    return { policy: null, syntaxError: findSyntaxError(text) };
  }
}

/** @returns the first mistake, with a message that says where it is. */
export function findSyntaxError(text: string): JsonMistake | null {
  const result = parseJsonTree(text);
  if (!("error" in result)) return null;
  const { line, column, message } = result.error;
  const where = `line ${line}, column ${column}`;
  return { ...result.error, message: `This is not valid JSON at ${where}: ${message}.` };
}

function isPolicy(value: unknown): value is EditedPolicy {
  return isJsonObject(value) && Array.isArray(value["actions"]) && value["actions"].every(isAction);
}

function isAction(value: unknown): value is EditedAction {
  return isJsonObject(value) && typeof value["kind"] === "string";
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
