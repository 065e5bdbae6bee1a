/**
 * docs/cli.md, generated from the table of commands. `npm run docs` writes it, and the JSON Schema of underpass.yml, which has
 * the same options. Tests fail when one of them is out of date.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { Command } from "../commands/command.ts";
import { COMMAND_GROUPS } from "../commands/table/table.ts";
import { buildJsonSchema } from "../config/schema.ts";
import { formatCommandHelp } from "./help.ts";

const PATH = join(import.meta.dirname, "../../docs/cli.md");
const SCHEMA_PATH = join(import.meta.dirname, "../underpass.schema.json");

/** @returns the text of docs/cli.md. */
export function formatReference(): string {
  const groups = COMMAND_GROUPS.map(({ title, commands }) =>
    [`## ${title}`, ...commands.flatMap((command) => formatCommand(command, command.name))].join(
      "\n\n",
    ),
  );
  const contents = COMMAND_GROUPS.map(
    ({ title, commands }) =>
      `- ${linkTo(title)}: ${commands.map(({ name }) => linkTo(name)).join(", ")}`,
  );
  return `${[INTRODUCTION, contents.join("\n"), ...groups].join("\n\n")}\n`;
}

function linkTo(heading: string): string {
  return `[${heading}](#${heading.toLowerCase().replaceAll(" ", "-")})`;
}

const INTRODUCTION = `# Commands

<!-- Generated from agent/commands/table/ by \`npm run docs\`. -->

\`underpass help <command>\` prints the same texts. Each option is written \`--name value\` or \`--name=value\`, or set in the
environment: \`--token-file\` is \`UNDERPASS_TOKEN_FILE\`. In the environment, line breaks or commas separate the values of a list
(of \`--header\`, whose values may contain commas, only line breaks), \`1\` sets a flag, and an empty value sets nothing. The
command line takes precedence, also over the variable of an option that can't be given with its own: with \`--name\`,
\`UNDERPASS_SUBDOMAIN\` and \`UNDERPASS_URL\` set nothing. So \`tunnels\`, \`tokens\` and \`logs\` use the first of these that is set: the option
\`--token-file\`, \`UNDERPASS_ACCESS_TOKEN\`, \`UNDERPASS_TOKEN_FILE\`, \`UNDERPASS_TOKEN\`, the last login. Other commands do
not use the access token.

A command ends with the exit code 0 when it is done, with 1 when it failed, its output can't be written (a full disk), or the
server rejected it, and with 2 when its arguments, or a file that they name, are invalid. One that runs until it is stopped,
such as \`http\` and \`logs\`, also ends with 0 when it was stopped with Ctrl+C. A terminal that is closed, and the end of the
program that reads the output, stop it as Ctrl+C does: open requests finish first. On Linux, a command that was started with \`nohup\` goes on after its
terminal is closed. The end of that program is noticed with the
next line. Another command that is interrupted before it is done, such as \`login\`, was not successful: a shell reports the exit
code 130. So does Ctrl+C within the first moments of any command, while the program is being loaded: nothing has been done
then. With \`npx\`, a shell reports 130 after any Ctrl+C where \`/bin/sh\` is dash (Debian, Ubuntu), because npm then ends
itself with the signal.`;

function formatCommand(command: Command, path: string): string[] {
  const help = stripVTControlCharacters(formatCommandHelp(command, path)).trimEnd();
  const text = `\`\`\`text\n${help}\n\`\`\``;
  const subcommands = (command.subcommands ?? []).flatMap((subcommand) =>
    formatCommand(subcommand, `${path} ${subcommand.name}`),
  );
  return [`### ${path}`, text, ...subcommands];
}

if (import.meta.main) {
  await writeFile(PATH, formatReference());
  await writeFile(SCHEMA_PATH, `${JSON.stringify(buildJsonSchema(), null, 2)}\n`);
}
