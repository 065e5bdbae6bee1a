/** Reads a traffic policy from a file, in YAML or JSON. Every problem is a sentence with the file, line and column. */
import { readFileSync, statSync } from "node:fs";
import type { z } from "zod";
import { describeReadError } from "../config/config-file.ts";
import { formatProblems, YamlSource, type Path, type Problem } from "../config/yaml-source.ts";
import { describeIssue } from "../../protocol/schemas/issue-messages.ts";
import { TrafficPolicy } from "../../protocol/schemas/access/policies.ts";
import { UsageError } from "../options.ts";
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
  const parsed = TrafficPolicy.safeParse(yaml.data, { error: describeIssue });
  if (parsed.error) {
    rejectProblems(
      path,
      parsed.error.issues.map((issue) => toProblem(yaml, issue)),
    );
  }
  const policy = parsed.data!;
  rejectProblems(
    path,
    findUnknownKeys(yaml.data, policy, []).map((key) => ({
      ...yaml.locateKey(key),
      message: `unknown key ${String(key.at(-1))}`,
    })),
  );
  return policy;
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

/** The schema drops keys that it does not know. In a file they are mistakes. */
function findUnknownKeys(given: unknown, known: unknown, path: Path): Path[] {
  if (typeof given !== "object" || given === null) return [];
  return Object.entries(given).flatMap(([name, value]): Path[] => {
    const at = [...path, Array.isArray(given) ? Number(name) : name];
    if (!Object.hasOwn(known as object, name)) return [at];
    return findUnknownKeys(value, (known as Record<string, unknown>)[name], at);
  });
}

/** @throws UsageError when there is a problem. */
function rejectProblems(path: string, problems: Problem[]): void {
  if (problems.length > 0) throw new UsageError(formatProblems(path, problems));
}
