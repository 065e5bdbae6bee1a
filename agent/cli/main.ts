/** Runs a command line of `underpass`, and reports its failure. */
import { explainError } from "../error-message.ts";
import { COMMANDS } from "../commands/table/table.ts";
import { UsageError } from "../options.ts";
import { InputError } from "../settings-error.ts";
import { RejectionError } from "../rejection-error.ts";
import { addAdvice, GENERAL_ADVICE, printError } from "../output/output.ts";
import { findCandidates } from "./completion.ts";
import { formatCommandHelp, formatOverview } from "./help.ts";
import { findHelpTopic, runCommandLine } from "./run-command-line.ts";
import { PROGRAM } from "../program.ts";

/** Ends the process when the command has ended. */
export async function main(args: string[]): Promise<never> {
  try {
    process.exitCode = await run(args);
  } catch (error) {
    reportError(error, args);
  }
  await flushOutput();
  // Kept-alive connections must not delay the end of the process.
  process.exit();
}

async function run(args: string[]): Promise<number> {
  const [name] = args;
  const options = args.slice(0, args.includes("--") ? args.indexOf("--") : undefined);
  if (name === "__complete") {
    // Called by the scripts of `underpass completion`.
    const candidates = await findCandidates(args.slice(1));
    process.stdout.write(candidates.map((candidate) => `${candidate.join("\t")}\n`).join(""));
    return 0;
  }
  if (name === undefined) {
    process.stderr.write(formatOverview(process.stderr.columns));
    return 2;
  }
  if (name === "--version" || name === "-v") return runCommandLine(["version"]);
  const isHelp = name === "help" || options.includes("--help") || options.includes("-h");
  if (!isHelp) return runCommandLine(args);
  const rest = args.filter((argument) => !["--help", "-h"].includes(argument));
  printHelp(name === "help" ? rest.slice(1) : rest);
  return 0;
}

/** @param args those of the command that the help is about; none for the list of all commands. */
function printHelp(args: string[]): void {
  const { columns } = process.stdout;
  if (args.length === 0) {
    process.stdout.write(formatOverview(columns));
    return;
  }
  const { command, path } = findHelpTopic(args);
  process.stdout.write(formatCommandHelp(command, path, columns));
}

/** A pipe may take output later, and `process.exit` would drop it. */
async function flushOutput(): Promise<void> {
  const streams = [process.stdout, process.stderr];
  await Promise.all(streams.map((stream) => new Promise((resolve) => stream.write("", resolve))));
}

function reportError(error: unknown, args: string[]): void {
  if (error instanceof UsageError) {
    printError(`${explainError(error)}\n${formatHelpHint(args)}`);
    process.exitCode = 2;
  } else {
    printError(formatFailure(error));
    process.exitCode = error instanceof InputError ? 2 : 1;
  }
}

/** Points to the help of the command that was called, or to the list of commands. */
function formatHelpHint(args: string[]): string {
  const name = args.find((arg) => COMMANDS.some((command) => command.name === arg));
  if (name === undefined) return `Run \`${PROGRAM} help\` for all commands.`;
  return `Run \`${PROGRAM} help ${name}\` for its usage.`;
}

function formatFailure(error: unknown): string {
  if (error instanceof RejectionError) return addAdvice(error, GENERAL_ADVICE);
  return explainError(error);
}
