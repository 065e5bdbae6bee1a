/** Finds the command of a command line in the table, parses its options, and runs it. */
import type { Command } from "../commands/command.ts";
import { COMMANDS } from "../commands/table/table.ts";
import {
  findPositionals,
  formatChoices,
  hasUnknownOption,
  parseOptions,
  UsageError,
  type OptionSpecs,
} from "../options.ts";
import { formatSuggestion } from "../options/suggestion.ts";
import { formatUpdateCommand } from "../update-advice.ts";
import { PROGRAM } from "../program.ts";

/** The names that ngrok, cloudflared and other tools have for commands. */
const SYNONYMS = [
  { command: "login", names: ["auth", "authtoken", "config", "enable", "signin"] },
  { command: "logout", names: ["deauth", "signout"] },
  { command: "tunnels", names: ["list", "ls", "ps", "status"] },
  { command: "http", names: ["expose", "funnel", "local", "serve", "share", "tunnel"] },
  { command: "connect", names: ["access"] },
  { command: "webhooks", names: ["listen"] },
  // The TLS of a local server passes through a TCP tunnel unchanged.
  { command: "tcp", names: ["tls"] },
  { command: "doctor", names: ["diag", "diagnose"] },
  { command: "start", names: ["run", "up"] },
];

/** A command, the names that lead to it (`tunnels list`), and the arguments without them. */
interface FoundCommand {
  command: Command;
  path: string;
  args: string[];
}

/** @param args all arguments after `underpass`. @returns the exit code. @throws UsageError */
export async function runCommandLine(args: string[]): Promise<number> {
  const { command, path, args: rest } = findCommand(args);
  if (!command.load) {
    const names = formatChoices((command.subcommands ?? []).map(({ name }) => name));
    throw new UsageError(`the subcommand of ${path} is missing; use ${names}`);
  }
  const input = await parseOptions(rest, command.options);
  const run = await command.load();
  return run(input);
}

/** @throws UsageError for an unknown command or subcommand. */
export function findCommand([name = "", ...args]: string[]): FoundCommand {
  const command = COMMANDS.find((known) => known.name === name);
  if (!command) throw new UsageError(`unknown command: ${name}${suggestCommand(name)}`);
  return findSubcommand({ command, path: name, args });
}

/** What a user most likely meant: a port to share, the name that another tool has for a command, or a mistyped name. */
function suggestCommand(name: string): string {
  if (/^(https?:\/\/.*|.*:)?\d{1,5}$/.test(name)) return `; did you mean: ${PROGRAM} http ${name}?`;
  if (name.startsWith("-")) return `; a command comes first, for example: ${PROGRAM} http 3000`;
  if (name === "update" || name === "upgrade") return `; run: ${formatUpdateCommand()}`;
  if (name === "udp") return `; for UDP, use a private network: ${PROGRAM} vpn NETWORK --setup`;
  const synonym = SYNONYMS.find(({ names }) => names.includes(name));
  if (synonym) return `; did you mean ${synonym.command}?`;
  return formatSuggestion(
    name,
    COMMANDS.map((known) => known.name),
  );
}

/**
 * Like `findCommand`, but the arguments before a subcommand's name may be missing: `help vpn add`.
 * @throws UsageError for an unknown command.
 */
export function findHelpTopic(names: string[]): FoundCommand {
  const found = findCommand(names.slice(0, 1));
  const command = found.command.subcommands?.find(({ name }) => names.slice(1).includes(name));
  return command ? { command, path: `${found.path} ${command.name}`, args: [] } : found;
}

function findSubcommand(found: FoundCommand): FoundCommand {
  const { command, path, args } = found;
  const { subcommands, subcommandIndex = 0 } = command;
  if (!subcommands) return found;
  const argument = findPositionals(args, collectOptions(command))[subcommandIndex];
  if (!argument) return found;
  const { value: name, index } = argument;
  const subcommand = subcommands.find((known) => known.name === name);
  if (!subcommand) {
    // The argument may be the value of an unknown option. Parsing the options reports that option.
    if (command.load && hasUnknownOption(args, collectOptions(command))) return found;
    const names = subcommands.map((known) => known.name);
    const suggestion = formatSuggestion(name, names) || `; use ${formatChoices(names)}`;
    throw new UsageError(`unknown subcommand of ${path}: ${name}${suggestion}`);
  }
  return findSubcommand({
    command: subcommand,
    path: `${path} ${name}`,
    args: args.toSpliced(index, 1),
  });
}

/** The options of a command and its subcommands: an option may stand before the subcommand's name. */
function collectOptions({ options, subcommands = [] }: Command): OptionSpecs {
  return Object.assign({}, ...subcommands.map(collectOptions), options) as OptionSpecs;
}
