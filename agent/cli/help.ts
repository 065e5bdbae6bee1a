/** The help texts, formatted for the terminal's width. */
import type { Command } from "../commands/command.ts";
import { COMMAND_GROUPS } from "../commands/table/table.ts";
import { formatChoices, type OptionSpec, type OptionSpecs } from "../options.ts";
import { bold } from "../output/format/colors.ts";

/** The widest help that is comfortable to read; also where the width is unknown. */
const MAX_WIDTH = 80;
/** Beside a wider left column there is no room for sentences. */
const LEFT_MAX_WIDTH = 32;
/** In a narrower right column each line would have a word or two. */
const RIGHT_MIN_WIDTH = 20;

type Row = readonly [left: string, right: string];

/** `underpass help`: all commands. */
export function formatOverview(columns: number | undefined): string {
  const width = getWidth(columns);
  const groups = COMMAND_GROUPS.map(({ title, commands }) => {
    const rows = commands.map(({ name, summary }): Row => [name, summary]);
    return formatSection(title, formatRows(rows, width));
  });
  return [
    `${wrap("Underpass gives a port on this machine a public URL.", width).join("\n")}\n`,
    formatSection("Usage", "  underpass <command> [options]"),
    ...groups,
    formatSection("Examples", formatRows(OVERVIEW_EXAMPLES, width)),
    wrap(
      "Run `underpass help <command>` for a command's options. Each option can also be set in the environment: --token-file is UNDERPASS_TOKEN_FILE.",
      width,
    ).join("\n"),
    "",
  ].join("\n");
}

const OVERVIEW_EXAMPLES: Row[] = [
  ["underpass login", "get a token for this machine, once"],
  ["underpass http 3000", "share the web server on port 3000"],
  ["underpass tcp 5432", "share a database, at a public TCP port"],
];

/** `underpass help <command>`. @param path the command's name, with those of the commands that it belongs to. */
export function formatCommandHelp(command: Command, path: string, columns?: number): string {
  const width = getWidth(columns);
  const { summary, usages, description, examples = [], options, subcommands = [] } = command;
  const paragraphs = description?.split("\n\n") ?? [];
  const sections = [
    `${wrap(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`, width).join("\n")}\n`,
    formatSection("Usage", usages.map((usage) => `  underpass ${usage}`).join("\n")),
    ...paragraphs.map((paragraph) => `${wrap(paragraph, width).join("\n")}\n`),
  ];
  if (subcommands.length > 0) {
    const rows = subcommands.map(({ usages: [usage = ""], summary: effect }): Row => [
      usage,
      effect,
    ]);
    sections.push(formatSection("Subcommands", formatRows(rows, width)));
  }
  if (Object.keys(options).length > 0) {
    sections.push(formatSection("Options", formatRows(describeOptions(options), width)));
  }
  if (examples.length > 0) sections.push(formatSection("Examples", formatRows(examples, width)));
  if (subcommands.length > 0) {
    const hint = `Run \`underpass help ${path} <subcommand>\` for its options.`;
    sections.push(`${wrap(hint, width).join("\n")}\n`);
  }
  return sections.join("\n");
}

/** @returns `--token-file FILE`, and what it does. */
function describeOptions(specs: OptionSpecs): Row[] {
  return Object.entries(specs).map(([name, spec]) => [
    `--${name}${spec.kind === "flag" ? "" : ` ${spec.placeholder ?? "VALUE"}`}`,
    describeOption(spec),
  ]);
}

function describeOption({ help, choices, kind }: OptionSpec): string {
  const values = choices ? `: ${formatChoices(choices)}` : "";
  const isRepeatable = kind === "list" && !help.includes("repeated");
  return `${help}${values}${isRepeatable ? "; may be repeated" : ""}`;
}

/** @param columns some terminals report 0. */
function getWidth(columns: number | undefined): number {
  return Math.min(columns || MAX_WIDTH, MAX_WIDTH);
}

function formatSection(title: string, body: string): string {
  return `${bold(`${title}:`)}\n${body}\n`;
}

/** Two columns; the right one is wrapped. When they do not fit beside each other, the descriptions stand below. */
function formatRows(rows: readonly Row[], width: number): string {
  const longest = Math.max(...rows.map(([left]) => left.length));
  const isNarrow = longest <= Math.min(LEFT_MAX_WIDTH, width - RIGHT_MIN_WIDTH - 4);
  const indent = " ".repeat(isNarrow ? longest + 4 : 6);
  return rows
    .map(([left, right]) => {
      const lines = wrap(right, Math.max(width - indent.length, RIGHT_MIN_WIDTH));
      const text = lines.map((line) => indent + line).join("\n");
      return isNarrow ? `  ${left}`.padEnd(indent.length) + text.trimStart() : `  ${left}\n${text}`;
    })
    .join("\n");
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
