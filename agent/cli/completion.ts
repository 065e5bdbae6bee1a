/** The completions that a shell offers for the word that is being typed. */
import type { Command } from "../commands/command.ts";
import { COMMANDS } from "../commands/table/table.ts";
import { findPositionals, type OptionSpec, type ValueCompletion } from "../options.ts";
import { findCommand } from "./run-command-line.ts";

/** `:file` and `:directory` ask the shell for its own completion of paths. */
type Candidate = readonly [word: string, description: string];

const HELP: Candidate = ["--help", "what the command does, and its options"];
const GLOBAL: Candidate[] = [
  ["help", "the usage and the options of a command"],
  ["--help", "all commands"],
  ["--version", "print the version"],
];

/** @param words those after `underpass`; the last one is being typed, and may be empty. */
export async function findCandidates(words: string[]): Promise<Candidate[]> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  const candidates = await listCandidates(before, current);
  return candidates.filter(([word]) => word.startsWith(":") || word.startsWith(current));
}

async function listCandidates(before: string[], current: string): Promise<Candidate[]> {
  if (before.length === 0) return [...listCommands(COMMANDS), ...GLOBAL];
  if (before[0] === "help") return listHelpTopics(before.slice(1));
  const found = findKnownCommand(before);
  if (!found) return [];
  const { command, args } = found;
  const [, assigned] = /^--([^=]+)=/.exec(current) ?? [];
  if (assigned !== undefined) {
    return listValues(getOption(command, assigned)).map(([word, description]) => [
      word.startsWith(":") ? word : `--${assigned}=${word}`,
      description,
    ]);
  }
  const [, last] = /^--([^=]+)$/.exec(before.at(-1) ?? "") ?? [];
  const option = last === undefined ? undefined : getOption(command, last);
  if (option && option.kind !== "flag") return listValues(option);
  if (current.startsWith("-")) return listOptions(command, before);
  return listArguments(command, args);
}

function findKnownCommand(words: string[]): ReturnType<typeof findCommand> | undefined {
  try {
    return findCommand(words);
  } catch {
    return undefined;
  }
}

function getOption({ options }: Command, name: string): OptionSpec | undefined {
  return Object.hasOwn(options, name) ? options[name] : undefined;
}

function listCommands(commands: readonly Command[]): Candidate[] {
  return commands.map(({ name, summary }) => [name, summary]);
}

function listHelpTopics(names: string[]): Candidate[] {
  let commands: readonly Command[] = COMMANDS;
  for (const name of names) {
    commands = commands.find((command) => command.name === name)?.subcommands ?? [];
  }
  return listCommands(commands);
}

/** Without those that are given already, unless they may be repeated. */
function listOptions({ options }: Command, before: string[]): Candidate[] {
  const names = new Set(before.map((word) => word.split("=")[0]));
  const left = Object.entries(options).filter(
    ([name, { kind }]) => kind === "list" || !names.has(`--${name}`),
  );
  return [...left.map(([name, { help }]): Candidate => [`--${name}`, help]), HELP];
}

async function listArguments(command: Command, args: string[]): Promise<Candidate[]> {
  const { subcommands = [], subcommandIndex = 0, options } = command;
  const given = findPositionals(args, options).map(({ value }) => value);
  const names = given.length === subcommandIndex ? listCommands(subcommands) : [];
  const first = given.length === 0 ? toCandidates(command.arguments) : [];
  const found = (await command.listArguments?.(args, options)) ?? [];
  return [...names, ...first, ...toCandidates(found.filter((word) => !given.includes(word)))];
}

function listValues(option: OptionSpec | undefined): Candidate[] {
  const words = option?.word === undefined ? [] : [option.word];
  return [...toCandidates(words), ...toCandidates(option?.choices ?? option?.complete)];
}

function toCandidates(completion: ValueCompletion | undefined): Candidate[] {
  if (completion === undefined) return [];
  if (typeof completion === "string") return [[`:${completion}`, ""]];
  return completion.map((word) => [word, ""]);
}
