/** The output of `underpass doctor`: a line for each check and advice below it, or one JSON array. */
import { CHECK_LABELS, type Report } from "../doctor/check.ts";
import { isColored } from "./format/colors.ts";
import { formatCount } from "./format/format-count.ts";
import { printColoredLine, printIndentedJson, printLine } from "./output.ts";
import { dim, green, red, yellow } from "./format/colors.ts";
import { getTerminalWidth } from "./format/table.ts";
import { wrapText } from "../screen/text.ts";
import { escapeControls } from "../../shared/text/escape-controls.ts";

type Status = Report["status"];

const LABEL_CHARS = Math.max(...Object.values(CHECK_LABELS).map((label) => label.length)) + 2;
const COLORS: Record<Status, (text: string) => string> = {
  ok: green,
  warning: yellow,
  problem: red,
  skipped: dim,
};
const SYMBOLS: Record<Status, string> = { ok: "✓", warning: "!", problem: "✗", skipped: "–" };
const WORD_CHARS = "problem".length;
/** In a narrower column each line would have a word or two. */
const TEXT_MIN_CHARS = 20;

/** Prints each report as soon as it and those before it are known. @returns whether something is broken. */
export async function printReports(reports: Promise<Report>[]): Promise<boolean> {
  const canShowSymbols = hasSymbols();
  const width = getTerminalWidth();
  const done: Report[] = [];
  for (const pending of reports) {
    const report = await pending;
    for (const line of formatReport(report, canShowSymbols, width)) printColoredLine(line);
    done.push(report);
  }
  printLine("");
  printLine(formatSummary(done));
  return hasProblem(done);
}

/** @returns whether something is broken. */
export async function printReportsJson(reports: Promise<Report>[]): Promise<boolean> {
  const done = await Promise.all(reports);
  printIndentedJson(done);
  return hasProblem(done);
}

/**
 * @param canShowSymbols whether symbols and colors stand for the words of the status.
 * @param width of the terminal, at which texts are wrapped; undefined: each is one line.
 */
export function formatReport(
  report: Report,
  canShowSymbols: boolean,
  width: number | undefined,
): string[] {
  const { check, status, tried, result, advice } = report;
  const mark = canShowSymbols ? SYMBOLS[status] : status.padEnd(WORD_CHARS);
  const label = ` ${CHECK_LABELS[check].padEnd(LABEL_CHARS)}`;
  const texts = wrapBeside(mark + label, result, width);
  const [first = "", ...rest] = canShowSymbols && status === "skipped" ? texts.map(dim) : texts;
  const line = `${canShowSymbols ? COLORS[status](mark) : mark}${label}${first}`;
  if (advice === null) return [line, ...rest];
  const [triedStart, adviceStart] = ["    tried: ", "    to do: "];
  const [triedText = "", ...triedRest] = wrapBeside(triedStart, tried, width);
  const [adviceText = "", ...adviceRest] = wrapBeside(adviceStart, advice, width);
  return [
    ...[line, ...rest],
    ...[triedStart + triedText, ...triedRest],
    ...[adviceStart + adviceText, ...adviceRest],
  ];
}

/** @returns the first line of a text that begins beside `start`, and the further ones below it. */
function wrapBeside(start: string, text: string, width: number | undefined): string[] {
  const plain = escapeControls(text);
  if (width === undefined) return [plain];
  const lines = wrapText(plain, Math.max(width - start.length, TEXT_MIN_CHARS));
  return lines.map((line, at) => (at === 0 ? line : " ".repeat(start.length) + line));
}

function formatSummary(reports: Report[]): string {
  const count = (status: Status): number =>
    reports.filter((report) => report.status === status).length;
  const [problems, warnings] = [count("problem"), count("warning")];
  const parts = [
    ...(problems === 0 ? [] : [formatCount(problems, "problem")]),
    ...(warnings === 0 ? [] : [formatCount(warnings, "warning")]),
  ];
  if (parts.length > 0) return `${parts.join(" and ")}; ${describeFine(count("ok"))}.`;
  return "Everything works.";
}

function describeFine(count: number): string {
  return `${formatCount(count, "check")} ${count === 1 ? "is" : "are"} fine`;
}

function hasProblem(reports: Report[]): boolean {
  return reports.some(({ status }) => status === "problem");
}

/** Without colors, as in a file or a pipe, words are easier to search for than symbols. */
function hasSymbols(): boolean {
  return isColored(process.env, process.stdout);
}
