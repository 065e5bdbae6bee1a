/** The relay's log: one JSON object a line, with the same fields as the server's (self-host/log.ts). */
import { LogLimiter } from "../shared/log.ts";

type Level = "info" | "warn" | "error";
type Fields = Record<string, unknown>;

export interface Log {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

export function createLog(stream: NodeJS.WritableStream): Log {
  // The relay continues when the reader of its log is gone.
  stream.on("error", () => {});
  // By message, which is a text of this code. Strangers and agents can cause some messages at any rate.
  const limiters = new Map<string, LogLimiter>();
  const write =
    (level: Level) =>
    (message: string, fields: Fields = {}) => {
      const now = new Date();
      const limiter = limiters.get(message) ?? new LogLimiter();
      limiters.set(message, limiter);
      const unlogged = limiter.admit(now.getTime());
      if (unlogged === null) return;
      const counted = unlogged > 0 && { unlogged };
      stream.write(
        `${JSON.stringify({ time: now.toISOString(), level, message, ...fields, ...counted })}\n`,
      );
    };
  return { info: write("info"), warn: write("warn"), error: write("error") };
}
