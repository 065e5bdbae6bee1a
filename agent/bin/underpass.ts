/** The command `underpass`. */
import { setFlagsFromString } from "node:v8";
import { findCandidates } from "../cli/completion.ts";
import { formatCommandHelp, formatOverview } from "../cli/help.ts";
import { findHelpTopic, runCommandLine } from "../cli/run-command-line.ts";
import { COMMANDS } from "../commands/table/table.ts";
import { getErrorMessage } from "../error-message.ts";
import { UsageError } from "../options.ts";
import { addAdvice } from "../output/output.ts";

async function main(args: string[]): Promise<number> {
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

// By default V8 lets its space for young objects grow to 64 MiB. Transferred bytes are outside of it: 1,000 open
// connections took 71 MiB with the default and 38 MiB with a small space, at the same speed.
setFlagsFromString("--semi-space-growth-factor=1");

// The reader of a pipe, such as `head`, may end first. Nothing is left to do then.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
  process.exit(code === "EPIPE" ? (process.exitCode ?? 0) : 1);
});

const args = process.argv.slice(2);
// The one-file executable is CommonJS, which has no `await` outside of functions.
void main(args)
  .then((exitCode) => (process.exitCode = exitCode), reportError)
  .then(flushOutput)
  // Kept-alive connections must not delay the end of the process.
  .then(() => process.exit());

/** A pipe may take output later, and `process.exit` would drop it. */
async function flushOutput(): Promise<void> {
  const streams = [process.stdout, process.stderr];
  await Promise.all(streams.map((stream) => new Promise((resolve) => stream.write("", resolve))));
}

function reportError(error: unknown): void {
  if (error instanceof UsageError) {
    process.stderr.write(`underpass: ${error.message}\n${formatHelpHint(args)}\n`);
    process.exitCode = 2;
  } else {
    process.stderr.write(`underpass: ${formatFailure(error)}\n`);
    process.exitCode = 1;
  }
}

/** Points to the help of the command that was called, or to the list of commands. */
function formatHelpHint(args: string[]): string {
  const name = args.find((arg) => COMMANDS.some((command) => command.name === arg));
  if (name === undefined) return "Run `underpass help` for all commands.";
  return `Run \`underpass help ${name}\` for how to call it.`;
}

function formatFailure(error: unknown): string {
  // Not `instanceof RejectionError`: that class is loaded with the commands that connect.
  const isRejection = error instanceof Error && error.name === "Rejected" && "reason" in error;
  return isRejection
    ? addAdvice({ reason: String(error.reason), message: error.message })
    : getErrorMessage(error);
}
