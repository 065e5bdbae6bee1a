/** Command-line options. Each is also an environment variable: `--token-file` is `UNDERPASS_TOKEN_FILE`. */
import { parseArgs } from "node:util";
import { formatForeignOption } from "./options/foreign-options.ts";
import { formatSuggestion } from "./options/suggestion.ts";

/** The arguments of the command, or the environment variables of its options, are invalid: exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** The completions that a shell offers for a value: names of files or directories, or these words. */
export type ValueCompletion = "file" | "directory" | readonly string[];

/** One row of a command's table of options, from which parsing, validation, help and completion derive. */
export interface OptionSpec {
  /** A `list` may be repeated, and its values may be separated by commas; in the environment by line breaks too. */
  kind: "text" | "flag" | "list";
  /** Only line breaks separate the values of this list, because they may contain commas. */
  hasCommas?: true;
  help: string;
  /** Stands for the value in the help text: `FILE`. */
  placeholder?: string;
  /** All values that are accepted. */
  choices?: readonly string[];
  /** What completion offers for a value that is not limited to `choices`. */
  complete?: ValueCompletion;
  /** A value besides the files that `complete` offers, such as `off`. */
  word?: string;
  /** Options that can't be given together with this one. Each pair is declared at one of its options. */
  excludes?: readonly string[];
  /** The option can't be given together with arguments. */
  excludesArguments?: true;
  /**
   * Validates one value and converts it; without it the value stays text. It may load its code first: help and completion do
   * not need it.
   * @param option `--ttl`, for the message. @throws UsageError
   */
  parse?(this: void, text: string, option: string): unknown;
}

export type OptionSpecs = Record<string, OptionSpec>;

export type OptionValues<Specs extends OptionSpecs> = {
  [Name in keyof Specs]: OptionValue<Specs[Name]>;
};
type OptionValue<Spec extends OptionSpec> = Spec["kind"] extends "flag"
  ? boolean
  : Spec["kind"] extends "list"
    ? ParsedText<Spec>[]
    : ParsedText<Spec> | undefined;
type ParsedText<Spec extends OptionSpec> = Spec extends {
  parse: (text: string, option: string) => infer Value;
}
  ? Awaited<Value>
  : Spec extends { choices: readonly (infer Choice)[] }
    ? Choice
    : string;

/** @throws UsageError for an unknown option, and for one whose value is missing or not valid. */
export async function parseOptions<Specs extends OptionSpecs>(
  args: string[],
  specs: Specs,
): Promise<{ values: OptionValues<Specs>; positionals: string[] }> {
  const { given, positionals } = readArguments(args, specs);
  const environment = readEnvironment(specs, given, positionals.length > 0);
  const values: [string, unknown][] = [];
  for (const [name, spec] of Object.entries(specs)) {
    const texts = given.get(name);
    const value =
      texts === undefined
        ? await parseValue(spec, environment.get(name), getVariable(name))
        : await parseValue(spec, texts, `--${name}`);
    values.push([name, value]);
  }
  return { values: Object.fromEntries(values) as OptionValues<Specs>, positionals };
}

/** Finds the arguments that are not options. Unlike `parseOptions`, it accepts unknown options, as flags. */
export function findPositionals(
  args: string[],
  specs: OptionSpecs,
): { value: string; index: number }[] {
  return tokenize(args, specs).filter((token) => token.kind === "positional");
}

/** Whether an option of a command line is none of `specs`. */
export function hasUnknownOption(args: string[], specs: OptionSpecs): boolean {
  return tokenize(args, specs).some(
    (token) => token.kind === "option" && !Object.hasOwn(specs, token.name),
  );
}

/** Finds the text of an option, which may be set in the environment, in a command line that need not be valid. */
export function findOptionText(
  args: string[],
  specs: OptionSpecs,
  name: string,
): string | undefined {
  const token = tokenize(args, specs).findLast((one) => one.kind === "option" && one.name === name);
  const given = token?.kind === "option" ? token.value : undefined;
  return given ?? (process.env[getVariable(name)] || undefined);
}

/** The argument of a command that takes one. @param what it is, for messages. @param example what to type instead. */
export function getOnlyArgument(positionals: string[], what: string, example: string): string {
  const [argument, ...extra] = positionals;
  if (argument === undefined) throw new UsageError(`${what} is missing; for example: ${example}`);
  rejectEmpty(argument, what);
  rejectExtraArguments(extra);
  return argument;
}

/** An empty text is most likely a variable of the shell that is not set. @throws UsageError */
export function rejectEmpty(text: string, what: string): void {
  if (text.trim() === "") throw new UsageError(`${what} is empty`);
}

/** @throws UsageError when the command got more arguments than it takes. */
export function rejectExtraArguments(extra: string[]): void {
  if (extra.length > 0) throw new UsageError(`unexpected argument: ${extra[0]}`);
}

/** @returns the name of the environment variable that sets the option. */
function getVariable(name: string): string {
  return `UNDERPASS_${name.toUpperCase().replaceAll("-", "_")}`;
}

function tokenize(args: string[], specs: OptionSpecs) {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, { kind }]) => [
      name,
      { type: kind === "flag" ? ("boolean" as const) : ("string" as const) },
    ]),
  );
  // Not strict: the errors of `parseArgs` are sentences of their own, without suggestions.
  return parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

/** @returns the texts given for each option; a flag has none. */
function readArguments(
  args: string[],
  specs: OptionSpecs,
): { given: Map<string, string[]>; positionals: string[] } {
  const given = new Map<string, string[]>();
  for (const token of tokenize(args, specs)) {
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const spec = Object.hasOwn(specs, name) && rawName.startsWith("--") ? specs[name] : undefined;
    if (!spec) {
      const known = Object.keys(specs).map((option) => `--${option}`);
      const hint = formatForeignOption(rawName, specs) || formatSuggestion(rawName, known);
      throw new UsageError(`unknown option: ${rawName}${hint}`);
    }
    if (spec.kind === "flag") {
      if (value !== undefined) throw new UsageError(`${rawName} takes no value`);
      given.set(name, []);
      continue;
    }
    if (value === undefined || (!inlineValue && /^-\D/.test(value))) {
      const example = `${rawName}=${spec.placeholder ?? "VALUE"}`;
      throw new UsageError(`the value of ${rawName} is missing; for example: ${example}`);
    }
    const earlier = spec.kind === "list" ? (given.get(name) ?? []) : [];
    given.set(name, [...earlier, value]);
  }
  return { given, positionals: findPositionals(args, specs).map(({ value }) => value) };
}

/** @param texts undefined when the option is not given. @param source where they come from, for messages. */
export async function parseValue(
  spec: OptionSpec,
  texts: string[] | undefined,
  source: string,
): Promise<unknown> {
  if (spec.kind === "flag") return texts !== undefined;
  const hasSeveral = spec.kind === "list" && !spec.hasCommas;
  const parts = texts?.flatMap((text) =>
    hasSeveral ? text.split(",").map((part) => part.trim()) : text,
  );
  const values: unknown[] = [];
  for (const text of parts ?? []) {
    // To ignore the option would open the tunnel without it.
    rejectEmpty(text, `the value of ${source}`);
    if (spec.choices && !spec.choices.includes(text)) {
      const suggestion = formatSuggestion(text, spec.choices);
      const choices = formatChoices(spec.choices);
      throw new UsageError(`${source} must be ${choices}, not ${text}${suggestion}`);
    }
    values.push(spec.parse ? await spec.parse(text, source) : text);
  }
  return spec.kind === "list" ? values : values[0];
}

/** @returns `a, b or c`. */
export function formatChoices(choices: readonly string[]): string {
  if (choices.length < 2) return choices.join();
  return `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
}

/**
 * @param given the options on the command line. They take precedence over their own variables, and over those of options that
 * they exclude.
 * @returns the texts that the environment sets for the other options. @throws UsageError when two of them exclude each other.
 */
function readEnvironment(
  specs: OptionSpecs,
  given: ReadonlyMap<string, string[]>,
  hasArguments: boolean,
): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [name, spec] of Object.entries(specs)) {
    const isOverridden =
      given.has(name) ||
      (spec.excludesArguments && hasArguments) ||
      findExcluded(specs, name, given.keys()) !== undefined;
    const texts = isOverridden ? undefined : readVariable(getVariable(name), spec);
    if (texts !== undefined) found.set(name, texts);
  }
  for (const [name, texts] of found) {
    const other = findExcluded(specs, name, found.keys());
    // `--name` and `--subdomain` mean the same, so their values may be equal.
    if (other === undefined || found.get(other)!.join() === texts.join()) continue;
    throw new UsageError(`use ${getVariable(name)} or ${getVariable(other)}, not both`);
  }
  return found;
}

/** @returns the first of `others` that can't be given together with the option. */
function findExcluded(
  specs: OptionSpecs,
  name: string,
  others: Iterable<string>,
): string | undefined {
  return [...others].find(
    (other) => specs[name]?.excludes?.includes(other) || specs[other]?.excludes?.includes(name),
  );
}

function readVariable(variable: string, spec: OptionSpec): string[] | undefined {
  const value = process.env[variable];
  if (value === undefined || value === "") return undefined;
  switch (spec.kind) {
    case "text":
      return [value];
    case "list":
      return value
        .split(spec.hasCommas ? "\n" : /[\n,]/)
        .map((part) => part.trim())
        .filter((part) => part !== "");
    case "flag":
      if (value === "1" || value === "true") return [];
      if (value === "0" || value === "false") return undefined;
      throw new UsageError(`${variable} must be 1 or 0, not ${value}`);
  }
}
