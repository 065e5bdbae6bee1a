/** Parses underpass.yml. Every problem is reported as a sentence with its file, line and column. */
import { dirname, relative, resolve } from "node:path";
import type { z } from "zod";
import { formatSuggestion } from "../cli/suggestion.ts";
import { parseHttpTunnel, type HttpTunnelDefinition } from "../commands/http.ts";
import { HTTP_TUNNEL_OPTIONS } from "../commands/table/http.ts";
import { TCP_TUNNEL_OPTIONS } from "../commands/table/tcp.ts";
import { parseTcpTunnel, type TcpTunnelDefinition } from "../commands/tcp.ts";
import { parseValue, UsageError, type OptionSpec, type OptionSpecs } from "../options.ts";
import { ConfigFields, toKey, TUNNEL_FIELDS } from "./schema.ts";
import { getErrorMessage } from "../error-message.ts";
import { formatProblems, YamlSource, type Path, type Problem } from "./yaml-source.ts";

/** One tunnel of the file. Two entries with the same name and fields describe the same tunnel. */
export type TunnelEntry = { name: string; fields: Fields } & (
  | { protocol: "http"; definition: HttpTunnelDefinition }
  | { protocol: "tcp"; definition: TcpTunnelDefinition }
);

export interface Config {
  path: string;
  server: string | undefined;
  tokenFile: string | undefined;
  caFile: string | undefined;
  tunnels: TunnelEntry[];
}

/** What the schema lets through. */
type Fields = Record<string, unknown>;

const TUNNELS_MAX = 256;
/** Two tunnels of one file can't have the same value of these. */
const UNIQUE_KEYS = ["subdomain", "url", "remote_port"] as const;

/**
 * @param path of the file. Relative paths in the file start at its directory.
 * @throws UsageError with all problems, each on a line of its own.
 */
export function parseConfig(
  text: string,
  path: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const source = new YamlSource(text, environment);
  rejectProblems(path, source.problems);
  const parsed = ConfigFields.safeParse(source.data);
  rejectProblems(path, toProblems(source, parsed.error?.issues ?? []));
  const { server, token_file, ca_file, tunnels } = parsed.data as unknown as {
    server?: string;
    token_file?: string;
    ca_file?: string;
    tunnels: Record<string, Fields>;
  };
  const problems = [...findCountProblems(source, tunnels), ...findDuplicates(source, tunnels)];
  const directory = dirname(path);
  const entries = Object.entries(tunnels).flatMap(([name, fields]) => {
    try {
      return [parseTunnel(name, fields, directory)];
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      problems.push(toUsageProblem(source, name, fields, error));
      return [];
    }
  });
  rejectProblems(path, problems);
  return {
    path,
    server,
    tokenFile: token_file === undefined ? undefined : resolve(directory, token_file),
    caFile: ca_file === undefined ? undefined : resolve(directory, ca_file),
    tunnels: entries,
  };
}

/** @throws UsageError when a value is not valid. */
function parseTunnel(name: string, fields: Fields, directory: string): TunnelEntry {
  const local = String(fields["local"]);
  if (fields["protocol"] === "tcp") {
    const values = parseValues(TCP_TUNNEL_OPTIONS, fields, directory);
    return { name, fields, protocol: "tcp", definition: parseTcpTunnel(local, values as never) };
  }
  const values = parseValues(HTTP_TUNNEL_OPTIONS, fields, directory);
  const definition = parseHttpTunnel(local, values as never, directory);
  return { name, fields, protocol: "http", definition };
}

/** The values of a table of options, as the command line would give them. */
function parseValues(
  specs: OptionSpecs,
  fields: Fields,
  directory: string,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [
      name,
      parseValue(spec, toTexts(spec, fields[toKey(name)], directory), `--${name}`),
    ]),
  );
}

/** @returns undefined when the option is not given; a flag has no texts. */
function toTexts(spec: OptionSpec, value: unknown, directory: string): string[] | undefined {
  if (value === undefined || value === false) return undefined;
  if (value === true) return [];
  const isPath = spec.complete === "file" || spec.complete === "directory";
  const texts = [value as string | number | (string | number)[]].flat().map(String);
  return isPath
    ? texts.map((text) => (text === spec.word ? text : resolve(directory, text)))
    : texts;
}

function findCountProblems(source: YamlSource, tunnels: Record<string, Fields>): Problem[] {
  const count = Object.keys(tunnels).length;
  if (count > 0 && count <= TUNNELS_MAX) return [];
  const message = `tunnels must have 1 to ${TUNNELS_MAX} entries, not ${count}`;
  return [{ ...source.locateKey(["tunnels"]), message }];
}

function findDuplicates(source: YamlSource, tunnels: Record<string, Fields>): Problem[] {
  const users = new Map<string, string>();
  const problems: Problem[] = [];
  for (const [name, fields] of Object.entries(tunnels)) {
    for (const key of UNIQUE_KEYS) {
      if (fields[key] === undefined) continue;
      const value = `${key} ${fields[key] as string | number}`;
      const user = users.get(value);
      if (user === undefined) users.set(value, name);
      else {
        const message = `${value} is already used by the tunnel ${user}`;
        problems.push({ ...source.locateValue(["tunnels", name, key]), message });
      }
    }
  }
  return problems;
}

/** A message of the command line names options; in the file they are keys. */
function toUsageProblem(
  source: YamlSource,
  name: string,
  fields: Fields,
  error: UsageError,
): Problem {
  const message = getErrorMessage(error).replace(/--([a-z][a-z-]*)/g, (_, option: string) =>
    toKey(option),
  );
  const words = message.split(/[^a-z_]+/);
  const key = Object.keys(fields).find((field) => words.includes(field)) ?? "local";
  return { ...source.locateValue(["tunnels", name, key]), message };
}

function toProblems(source: YamlSource, issues: readonly z.core.$ZodIssue[]): Problem[] {
  return issues.flatMap((issue): Problem[] => {
    const { path } = issue;
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({
        ...source.locateKey([...path, key]),
        message: describeUnknownKey(key, path, findValue(source.data, path)),
      }));
    }
    if (issue.code === "invalid_key") {
      return [{ ...source.locateKey(path), message: issue.issues[0]?.message ?? issue.message }];
    }
    const name = [...path].reverse().find((part) => typeof part === "string");
    const value = findValue(source.data, path);
    if (value === undefined && name !== undefined) {
      return [{ ...source.locateKey(path.slice(0, -1)), message: `${name} is missing` }];
    }
    const problem = value === null && name !== undefined ? "has no value" : issue.message;
    const message = name === undefined ? problem : `${name} ${problem}`;
    return [{ ...source.locateValue(path), message }];
  });
}

function describeUnknownKey(key: string, path: Path, parent: unknown): string {
  if (path.length === 0)
    return `unknown key ${key}${formatSuggestion(key, Object.keys(ConfigFields.shape))}`;
  const protocol = (parent as Fields)["protocol"] === "tcp" ? "tcp" : "http";
  const other = protocol === "tcp" ? "http" : "tcp";
  if (key in TUNNEL_FIELDS[other].shape) {
    return `${key} is an option of tunnels with protocol: ${other}, not of ${protocol}`;
  }
  return `unknown key ${key}${formatSuggestion(key, Object.keys(TUNNEL_FIELDS[protocol].shape))}`;
}

function findValue(data: unknown, path: Path): unknown {
  let value = data;
  for (const part of path) value = (value as Record<PropertyKey, unknown> | null)?.[part];
  return value;
}

/** @throws UsageError when there is a problem. */
function rejectProblems(path: string, problems: Problem[]): void {
  if (problems.length === 0) return;
  const inDirectory = relative(process.cwd(), path);
  const file = inDirectory.startsWith("..") ? path : inDirectory;
  throw new UsageError(formatProblems(file, problems));
}
