/** The relay's log: one JSON object a line. `npm start` reads `level` and `event` to pass lines on. */
import { LogLimiter } from "../shared/log.ts";

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
  // By event, which is a text of this code. Strangers and agents can cause some events at any rate.
  const limiters = new Map<string, LogLimiter>();
  const write =
    (level: Level) =>
    (event: string, fields: Fields = {}) => {
      const now = new Date();
      const limiter = limiters.get(event) ?? new LogLimiter();
      limiters.set(event, limiter);
      const unlogged = limiter.admit(now.getTime());
      if (unlogged === null) return;
      const counted = unlogged > 0 && { unlogged };
      stream.write(
        `${JSON.stringify({ time: now.toISOString(), level, event, ...fields, ...counted })}\n`,
      );
    };
  return { info: write("info"), warn: write("warn"), error: write("error") };
}
