/** Reads a traffic policy from a file, in YAML or JSON. Every problem is a sentence with the file, line and column. */
import { readFileSync, statSync } from "node:fs";
import type { z } from "zod";
import { describeReadError } from "../config/config-file.ts";
import { formatProblems, YamlSource, type Path, type Problem } from "../config/yaml-source.ts";
import { describeIssue } from "../../protocol/schemas/issue-messages.ts";
import { PolicyAction, TrafficPolicy } from "../../protocol/schemas/access/policies.ts";
import { isJsonObject } from "../../shared/json.ts";
import { UsageError } from "../options.ts";
import { formatSuggestion } from "../options/suggestion.ts";
import { OFF } from "./off.ts";

const FILE_MAX_BYTES = 256 * 1024;

/**
 * @param path or `off`; a file of this name is `./off`. @param source for messages: `--policy-file`.
 * @returns null when the policy is to be removed. @throws UsageError with all problems, each on a line of its own.
 */
export function readPolicyFile(path: string, source: string): TrafficPolicy | null {
  if (path === OFF) return null;
  return parsePolicy(readText(path, source), path);
}

/** @param path for messages. `${NAME}` in a value is replaced from the environment. @throws UsageError */
export function parsePolicy(
  text: string,
  path: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): TrafficPolicy {
  const yaml = new YamlSource(text, environment);
  rejectProblems(path, yaml.problems);
  const { data, error } = TrafficPolicy.safeParse(yaml.data, { error: describeIssue });
  const invalid = (error?.issues ?? []).map((issue) => toProblem(yaml, issue));
  rejectProblems(path, [...invalid, ...findUnknownKeys(yaml)]);
  return data!;
}

function readText(path: string, source: string): string {
  try {
    if (statSync(path).size > FILE_MAX_BYTES)
      throw new UsageError(
        `${source} ${path} is larger than ${FILE_MAX_BYTES / 1024} KiB; shorten it`,
      );
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`can't read ${source} ${path}: ${describeReadError(error)}`);
  }
}

function toProblem(yaml: YamlSource, { path, message }: z.core.$ZodIssue): Problem {
  const name = path.findLast((part) => typeof part === "string") ?? "the policy";
  const entry = typeof path.at(-1) === "number" ? `an entry of ${String(name)}` : String(name);
  return { ...yaml.locateValue(path), message: `${entry} ${message}` };
}

const POLICY_KEYS = Object.keys(TrafficPolicy.shape);
const ACTION_KEYS = new Map<unknown, readonly string[]>(
  PolicyAction.options.map(({ shape }) => [shape.kind.value, Object.keys(shape)]),
);
const KEYS_OF_ALL_ACTIONS = [...new Set([...ACTION_KEYS.values()].flat())];

/** The schema drops keys that it does not know. In a file they are mistakes. */
function findUnknownKeys(yaml: YamlSource): Problem[] {
  if (!isJsonObject(yaml.data)) return [];
  const { actions } = yaml.data;
  const inActions = Array.isArray(actions) ? actions : [];
  return [
    ...findOtherKeys(yaml, [], yaml.data, POLICY_KEYS),
    ...inActions.flatMap((action: unknown, index) => {
      if (!isJsonObject(action)) return [];
      const known = ACTION_KEYS.get(action["kind"]) ?? KEYS_OF_ALL_ACTIONS;
      return findOtherKeys(yaml, ["actions", index], action, known);
    }),
  ];
}

function findOtherKeys(
  yaml: YamlSource,
  path: Path,
  value: object,
  known: readonly string[],
): Problem[] {
  const others = Object.keys(value).filter((key) => !known.includes(key));
  return others.map((key) => ({
    ...yaml.locateKey([...path, key]),
    message: `unknown key ${key}${formatSuggestion(key, known)}`,
  }));
}

/** @throws UsageError when there is a problem. */
function rejectProblems(path: string, problems: Problem[]): void {
  if (problems.length > 0) throw new UsageError(formatProblems(path, problems));
}
