/** Command-line options, each also an environment variable: `--token-file` is `UNDERPASS_TOKEN_FILE`. */
import { parseArgs } from "node:util";

export class UsageError extends Error {
  override name = "UsageError";
}

export interface OptionSpec {
  /** A `list` may be repeated; in the environment its values are separated by commas. */
  kind: "text" | "flag" | "list";
  help: string;
  /** How the value is called in the help. */
  value?: string;
  short?: string;
}

export type OptionValues<Specs extends Record<string, OptionSpec>> = {
  [Name in keyof Specs]: ValueOfKind<Specs[Name]["kind"]>;
};
type ValueOfKind<Kind extends OptionSpec["kind"]> = Kind extends "flag"
  ? boolean
  : Kind extends "list"
    ? string[]
    : string | undefined;

/** @throws UsageError for an option that does not exist or lacks its value. */
export function parseOptions<Specs extends Record<string, OptionSpec>>(
  args: string[],
  specs: Specs,
): { values: OptionValues<Specs>; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [
      name,
      {
        type: spec.kind === "flag" ? ("boolean" as const) : ("string" as const),
        ...(spec.kind === "list" ? { multiple: true } : {}),
        ...(spec.short === undefined ? {} : { short: spec.short }),
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
    Object.entries(specs).map(([name, spec]) => {
      const given = parsed.values[name] ?? fromEnvironment(name, spec);
      if (spec.kind === "list") return [name, given ?? []];
      return [name, spec.kind === "flag" ? given === true : given];
    }),
  );
  return { values: values as OptionValues<Specs>, positionals: parsed.positionals };
}

function fromEnvironment(name: string, spec: OptionSpec): string | string[] | boolean | undefined {
  const value = process.env[`UNDERPASS_${name.toUpperCase().replaceAll("-", "_")}`];
  if (value === undefined || value === "") return undefined;
  if (spec.kind === "text") return value;
  if (spec.kind === "list") return value.split(",").map((part) => part.trim());
  return value === "1" || value === "true";
}

export function helpOf(specs: Record<string, OptionSpec>): string {
  const rows = Object.entries(specs).map(([name, spec]) => {
    const value = spec.kind === "flag" ? "" : ` ${spec.value ?? "VALUE"}`;
    return [`  --${name}${value}`, spec.help] as const;
  });
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, help]) => left.padEnd(width) + help).join("\n");
}
