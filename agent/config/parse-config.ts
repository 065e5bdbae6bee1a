/** Parses underpass.yml. Every problem is reported as a sentence with its file, line and column. */
import { dirname, relative, resolve } from "node:path";
import type { z } from "zod";
import { DEFAULT_PROJECT_SLUG, toLabel } from "../../protocol/names.ts";
import { formatSuggestion } from "../options/suggestion.ts";
import type { ListenAddress } from "../connect/listen-address.ts";
import { parseValue, UsageError, type OptionSpec, type OptionSpecs } from "../options.ts";
import { parseTcpTunnel, type TcpTunnelDefinition } from "../tcp/tcp-definition.ts";
import { TCP_TUNNEL_OPTIONS } from "../tcp/tcp-options.ts";
import { parseHttpTunnel, type HttpTunnelDefinition } from "../tunnel/http-definition.ts";
import { HTTP_TUNNEL_OPTIONS } from "../tunnel/http-options.ts";
import type { AccessValues } from "../server-access.ts";
import { CHECKED_ACCESS_OPTIONS } from "./access-options.ts";
import { toKey } from "./option-keys.ts";
import { ConfigFields, FILE_OPTIONS, TUNNEL_FIELDS } from "./schema.ts";
import { explainError } from "../error-message.ts";
import { formatProblems, YamlSource, type Path, type Problem } from "./yaml-source.ts";

/** One tunnel of the file. Two entries with the same name and fields describe the same tunnel. */
export type TunnelEntry = {
  name: string;
  fields: Fields;
  /** Undefined: the inspector of all tunnels shows this one. */
  inspect: ListenAddress | "off" | undefined;
} & (
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

/** Fields that the schema accepts. */
type Fields = Record<string, unknown>;

const TUNNELS_MAX = 256;
/** Two tunnels of one file can't have the same value of these, except in a pool. `name` is another key for the subdomain. */
const UNIQUE_KEYS = ["subdomain", "name", "url", "remote_port"] as const;

/**
 * @param path of the file. Relative paths in the file start at its directory.
 * @param overrides options of the command line. The file's values of the same options are not used, so they are not checked.
 * @throws UsageError with all problems, each on a line of its own.
 */
export async function parseConfig(
  text: string,
  path: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  overrides: Readonly<Partial<AccessValues>> = {},
): Promise<Config> {
  const source = new YamlSource(text, environment);
  rejectProblems(path, source.problems);
  const parsed = ConfigFields.safeParse(source.data);
  rejectProblems(path, toProblems(source, parsed.error?.issues ?? []));
  const file = parsed.data as Fields & { tunnels: Record<string, Fields> };
  const { tunnels } = file;
  const directory = dirname(path);
  const { access, problems } = await parseAccess(source, file, directory, overrides);
  problems.push(...findCountProblems(source, tunnels), ...findDuplicates(source, tunnels));
  const entries: TunnelEntry[] = [];
  for (const [name, fields] of Object.entries(tunnels)) {
    const parsed = await parseTunnel(name, fields, directory);
    if (!("errors" in parsed)) entries.push(parsed);
    else
      problems.push(...parsed.errors.map((error) => toUsageProblem(source, name, fields, error)));
  }
  rejectProblems(path, problems);
  return {
    path,
    server: access.server,
    tokenFile: access["token-file"],
    caFile: access["ca-file"],
    tunnels: entries,
  };
}

async function parseAccess(
  source: YamlSource,
  file: Fields,
  directory: string,
  overrides: Readonly<Partial<AccessValues>>,
): Promise<{ access: Partial<AccessValues>; problems: Problem[] }> {
  const access: Partial<AccessValues> = {};
  const problems: Problem[] = [];
  for (const [name, spec] of Object.entries(CHECKED_ACCESS_OPTIONS)) {
    if (overrides[name as keyof AccessValues] !== undefined) continue;
    const { values, errors } = await parseValues({ [name]: spec }, file, directory);
    Object.assign(access, values);
    const place = source.locateValue([toKey(name)]);
    problems.push(...errors.map((error) => ({ ...place, message: toFileMessage(error) })));
  }
  return { access, problems };
}

/** @returns the tunnel, or everything that is wrong with its values. */
async function parseTunnel(
  name: string,
  fields: Fields,
  directory: string,
): Promise<TunnelEntry | { errors: UsageError[] }> {
  const local = String(fields["local"]);
  const isTcp = fields["protocol"] === "tcp";
  const specs = isTcp ? TCP_TUNNEL_OPTIONS : HTTP_TUNNEL_OPTIONS;
  const { values, errors } = await parseValues(specs, fields, directory);
  const own = await parseValues(FILE_OPTIONS, fields, directory);
  errors.push(...own.errors);
  const { inspect } = own.values as { inspect: TunnelEntry["inspect"] };
  const common = { name, fields, inspect };
  try {
    const entry: TunnelEntry = isTcp
      ? { ...common, protocol: "tcp", definition: parseTcpTunnel(local, values, directory) }
      : { ...common, protocol: "http", definition: parseHttpTunnel(local, values, directory) };
    return errors.length === 0 ? entry : { errors };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // Values that are not valid were left out above, which can cause this error, unless it is about `local`.
    const isCertain = errors.length === 0 || findKey(fields, error) === "local";
    return { errors: isCertain ? [...errors, error] : errors };
  }
}

/** The values of a table of options, as the command line would give them, without those that are not valid. */
async function parseValues(specs: OptionSpecs, fields: Fields, directory: string) {
  const errors: UsageError[] = [];
  const parse = async (name: string, spec: OptionSpec): Promise<unknown> => {
    try {
      return await parseValue(spec, toTexts(spec, fields[toKey(name)], directory), `--${name}`);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      errors.push(error);
      return spec.kind === "list" ? [] : undefined;
    }
  };
  const values: Record<string, unknown> = {};
  for (const [name, spec] of Object.entries(specs)) values[name] = await parse(name, spec);
  return { values: values as never, errors };
}

/** @returns undefined when the option is not given; a flag has no texts. */
function toTexts(spec: OptionSpec, value: unknown, directory: string): string[] | undefined {
  if (value === undefined || value === false) return undefined;
  if (value === true) return [];
  const isPath = spec.complete === "file" || spec.complete === "directory";
  const texts = [value as string | number | (string | number)[]].flat().map(String);
  return isPath
    ? texts.map((text) => (text === "" || text === spec.word ? text : resolve(directory, text)))
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
      const value = fields[key] as string | number;
      const taken = toTakenValue(key, value, fields["project"] as string | number | undefined);
      const user = users.get(taken) ?? name;
      users.set(taken, user);
      const isPool = fields["pool"] === true && tunnels[user]?.["pool"] === true;
      if (user === name || isPool) continue;
      const message = `${key} ${value} is already used by the tunnel ${user}`;
      problems.push({ ...source.locateValue(["tunnels", name, key]), message });
    }
  }
  return problems;
}

/** The same subdomain is another one in each project. */
function toTakenValue(
  key: (typeof UNIQUE_KEYS)[number],
  value: string | number,
  project: string | number = DEFAULT_PROJECT_SLUG,
): string {
  const isSubdomain = key === "subdomain" || key === "name";
  return isSubdomain ? `subdomain ${toLabel(String(value), String(project))}` : `${key} ${value}`;
}

function toUsageProblem(
  source: YamlSource,
  name: string,
  fields: Fields,
  error: UsageError,
): Problem {
  const path = ["tunnels", name, findKey(fields, error)];
  return { ...source.locateValue(path), message: toFileMessage(error) };
}

/** A message of the command line names options; in the file they are keys. */
function toFileMessage(error: UsageError): string {
  return explainError(error).replace(/--([a-z][a-z-]*)/g, (_, option: string) => toKey(option));
}

/** @returns the key that the message is about. */
function findKey(fields: Fields, error: UsageError): string {
  // A problem inside of the policy's file begins with its path, line and column.
  if (/^[^\n]+:\d+:\d+: /.test(explainError(error)) && "policy" in fields) return "policy";
  const words = toFileMessage(error).split(/[^a-z_]+/);
  return Object.keys(fields).find((field) => words.includes(field)) ?? "local";
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
    const name = path.findLast((part) => typeof part === "string");
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
  const known = Object.keys(TUNNEL_FIELDS[protocol].shape);
  // The name of the option on the command line is a likely mistake: policy_file for policy.
  const written = toKey(key.replaceAll("_", "-"));
  return `unknown key ${key}${formatSuggestion(known.includes(written) ? written : key, known)}`;
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
