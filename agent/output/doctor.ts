/** The output of `underpass doctor`: a line for each check and advice below it, or one JSON array. */
import { CHECK_LABELS, type Report } from "../doctor/check.ts";
import { isColored } from "./format/colors.ts";
import { formatCount } from "./format/format-count.ts";
import { printColoredLine, printIndentedJson, printLine } from "./output.ts";
import { dim, green, red, yellow } from "./format/colors.ts";
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

/** Prints each report as soon as it and those before it are known. @returns whether something is broken. */
export async function printReports(reports: Promise<Report>[]): Promise<boolean> {
  const canShowSymbols = hasSymbols();
  const done: Report[] = [];
  for (const pending of reports) {
    const report = await pending;
    for (const line of formatReport(report, canShowSymbols)) printColoredLine(line);
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

function formatReport(report: Report, canShowSymbols: boolean): string[] {
  const { status, tried, result, advice } = report;
  const mark = canShowSymbols ? COLORS[status](SYMBOLS[status]) : status.padEnd(WORD_CHARS);
  const label = CHECK_LABELS[report.check].padEnd(LABEL_CHARS);
  const text = escapeControls(result);
  const line = `${mark} ${label}${canShowSymbols && status === "skipped" ? dim(text) : text}`;
  if (advice === null) return [line];
  return [line, `    tried: ${escapeControls(tried)}`, `    to do: ${escapeControls(advice)}`];
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
