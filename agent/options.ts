/** Command-line options. Each is also an environment variable: `--token-file` is `UNDERPASS_TOKEN_FILE`. */
import { parseArgs } from "node:util";

/** The command was called with wrong arguments: exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** One row of a command's table of options, from which parsing, validation and help text derive. */
export interface OptionSpec {
  /** A `list` may be repeated; in the environment its values are separated by commas. */
  kind: "text" | "flag" | "list";
  help: string;
  /** The placeholder of the value in the help text. */
  value?: string;
  /**
   * Validates one value and converts it; without it the value stays text.
   * @param option `--ttl`, for the message. @throws UsageError
   */
  parse?(this: void, text: string, option: string): unknown;
}

export type OptionValues<Specs extends Record<string, OptionSpec>> = {
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
  ? Value
  : string;

/** @throws UsageError for an unknown option, and for one whose value is missing or not valid. */
export function parseOptions<Specs extends Record<string, OptionSpec>>(
  args: string[],
  specs: Specs,
): { values: OptionValues<Specs>; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, { kind }]) => [
      name,
      {
        type: kind === "flag" ? ("boolean" as const) : ("string" as const),
        multiple: kind === "list",
      },
    ]),
  );
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message.split(". To specify")[0]);
  }
  const values = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [
      name,
      parseValue(name, spec, parsed.values[name] ?? readEnvironment(name, spec)),
    ]),
  );
  return { values: values as OptionValues<Specs>, positionals: parsed.positionals };
}

/** The argument of a command that takes one. @throws UsageError with `missing` when there is none. */
export function getOnlyArgument(positionals: string[], missing: string): string {
  const [argument, ...extra] = positionals;
  if (argument === undefined) throw new UsageError(missing);
  rejectExtraArguments(extra);
  return argument;
}

/** @throws UsageError when the command got more arguments than it takes. */
export function rejectExtraArguments(extra: string[]): void {
  if (extra.length > 0) throw new UsageError(`unexpected argument: ${extra[0]}`);
}

export function formatHelp(specs: Record<string, OptionSpec>): string {
  const rows = Object.entries(specs).map(([name, spec]) => {
    const value = spec.kind === "flag" ? "" : ` ${spec.value ?? "VALUE"}`;
    return [`  --${name}${value}`, spec.help] as const;
  });
  return formatColumns(rows);
}

export function formatColumns(rows: (readonly [left: string, right: string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => left.padEnd(width) + right).join("\n");
}

function parseValue(name: string, spec: OptionSpec, value: unknown): unknown {
  const parse = (text: string): unknown => spec.parse?.(text, `--${name}`) ?? text;
  switch (spec.kind) {
    case "flag":
      return value === true;
    case "list":
      return ((value ?? []) as string[]).map(parse);
    case "text":
      return value === undefined ? undefined : parse(value as string);
  }
}

function readEnvironment(name: string, spec: OptionSpec): string | string[] | boolean | undefined {
  const value = process.env[`UNDERPASS_${name.toUpperCase().replaceAll("-", "_")}`];
  if (value === undefined || value === "") return undefined;
  switch (spec.kind) {
    case "text":
      return value;
    case "list":
      return value.split(",").map((part) => part.trim());
    case "flag":
      return value === "1" || value === "true";
  }
}
