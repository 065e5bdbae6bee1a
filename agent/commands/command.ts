/** The shape of a command in the table (agent/commands/table/), and the options that several commands share. */
import type { OptionSpecs, OptionValues, ValueCompletion } from "../options.ts";
import { LEVELS } from "../output/output.ts";

/** A command as the table describes it: parsing, help, docs/cli.md and completion derive from it. */
export interface CommandSpec {
  name: string;
  /** One line of the list of commands. */
  summary: string;
  /** The lines of "Usage" in its help, without `underpass`: `http <port|host:port|URL>`. */
  usages: readonly string[];
  /** What a user must know beyond the summary and the options. Paragraphs are separated by an empty line. */
  description?: string;
  /** Complete command lines, and what each one does. */
  examples?: readonly (readonly [line: string, effect: string])[];
  /** The completions for the first argument. */
  arguments?: ValueCompletion;
  /**
   * Finds words that completion offers for each argument, in less than two seconds and without an error.
   * @param args those before the word that is being typed.
   */
  listArguments?(this: void, args: string[], options: OptionSpecs): Promise<string[]>;
  options: OptionSpecs;
}

/** A command with the function that loads its code, so that each command starts without the code of the others. */
export interface Command extends CommandSpec {
  /** Without it the command needs a subcommand. */
  load?(this: void): Promise<Run<OptionSpecs>>;
  subcommands?: readonly Command[];
  /** How many arguments stand before the subcommand's name: 1 in `vpn <network> add`. Default: 0. */
  subcommandIndex?: number;
}

/** A command's code. @returns the exit code: 0 when it is done or the user stopped it, 1 when it was rejected or failed. */
type Run<Specs extends OptionSpecs> = (input: Input<Specs>) => Promise<number> | number;

/** A command line without the names of the command and subcommand. */
export interface Input<Specs extends OptionSpecs> {
  values: OptionValues<Specs>;
  positionals: string[];
}

/** Joins a row of the table and its code. The compiler compares the options of the two. */
export function defineCommand<Spec extends CommandSpec>(
  spec: Spec,
  load: () => Promise<Run<Spec["options"]>>,
  subcommands: Pick<Command, "subcommands" | "subcommandIndex"> = {},
): Command {
  return { ...spec, ...subcommands, load };
}

export const CONFIG_OPTION = {
  config: {
    kind: "text",
    placeholder: "FILE",
    help: "the file (default: underpass.yml in this directory or above it)",
    complete: "file",
  },
} as const satisfies OptionSpecs;

export const JSON_OPTION = {
  json: { kind: "flag", help: "print one JSON object per line" },
} as const satisfies OptionSpecs;

export const YES_OPTION = {
  yes: { kind: "flag", help: "do not ask for confirmation" },
} as const satisfies OptionSpecs;

export const LOG_LEVEL_OPTION = {
  "log-level": {
    kind: "text",
    placeholder: "LEVEL",
    help: "how much is printed (default: info); at a terminal, lines instead of the screen",
    choices: LEVELS,
  },
} as const satisfies OptionSpecs;
