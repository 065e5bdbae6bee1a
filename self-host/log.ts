/** The log of the server: readable lines at a terminal, otherwise one JSON object per line. */
import { escapeControls } from "../shared/text/escape-controls.ts";

type Level = "info" | "warn" | "error";

export interface Log {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
  /** Logs a line of another process, which can be a JSON log entry itself. */
  forward(source: string, level: Level, line: string): void;
}

/** What a reader of the log that has stopped, such as a full logging service, makes the server hold at most, besides one line. */
const LOG_WAITING_MAX_BYTES = 4 * 1024 * 1024;

export function createLog(stream: NodeJS.WriteStream): Log {
  // The reader of the log has closed the stream. The server continues without it.
  stream.on("error", () => {});
  const format = stream.isTTY ? formatForTerminal : formatAsJson;
  let lost = 0;
  const write =
    (level: Level) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      if (stream.writableLength > LOG_WAITING_MAX_BYTES) {
        lost += 1;
        return;
      }
      if (lost > 0) {
        const text =
          "log: these lines are missing, because the reader of the log did not take them";
        stream.write(`${format("warn", text, { lines: lost })}\n`);
        lost = 0;
      }
      stream.write(`${format(level, message, fields)}\n`);
    };
  return {
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    forward(source, level, line) {
      const entry = parseEntry(line);
      if (!entry) write(level)(line, { source });
      else write(entry.level)(entry.message, { source, ...entry.fields });
    },
  };
}

function formatAsJson(level: Level, message: string, fields: Record<string, unknown>): string {
  // A line that is passed on has the time of its program. Its other fields do not replace those of the log.
  const entry = { time: new Date().toISOString(), level, message };
  return JSON.stringify({ ...entry, ...fields, level, message });
}

function formatForTerminal(level: Level, message: string, fields: Record<string, unknown>): string {
  // A line that is passed on has the time of its program, too, which is the same in seconds.
  const { time: _, ...shown } = fields;
  const time = new Date().toTimeString().slice(0, 8);
  const mark = level === "info" ? "" : `${level}: `;
  const rest = Object.entries(shown).map(([name, value]) => ` ${name}=${formatValue(value)}`);
  return escapeControls(`${time} ${mark}${message}${rest.join("")}`);
}

function formatValue(value: unknown): string {
  return typeof value === "string" && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value);
}

/** The Worker logs objects with a level and an event, the relay those of this log; workerd and others log plain text. */
function parseEntry(
  line: string,
): { level: Level; message: string; fields: Record<string, unknown> } | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const entry = JSON.parse(line) as Record<string, unknown>;
    // An event of the Worker can have a message among its fields.
    const name = "event" in entry ? "event" : "message";
    const { level, [name]: message, ...fields } = entry;
    if (typeof message !== "string") return undefined;
    return { level: level === "warn" || level === "error" ? level : "info", message, fields };
  } catch {
    return undefined;
  }
}
