/** The relay's log: one JSON object a line. `npm start` reads `level` and `event` to pass lines on. */

type Level = "info" | "warn" | "error";
type Fields = Record<string, unknown>;

export interface Log {
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

export function createLog(stream: NodeJS.WritableStream): Log {
  // The relay continues when the reader of its log is gone.
  stream.on("error", () => {});
  const write =
    (level: Level) =>
    (event: string, fields: Fields = {}) => {
      stream.write(
        `${JSON.stringify({ time: new Date().toISOString(), level, event, ...fields })}\n`,
      );
    };
  return { info: write("info"), warn: write("warn"), error: write("error") };
}
