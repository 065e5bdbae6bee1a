/** What the agent's commands share: their shape, common options, and running until the user stops them. */
import { stopWithNpx } from "../npx.ts";
import { LEVELS, type Level, type Output } from "../output/output.ts";
import { UsageError, type OptionSpec } from "../options.ts";
import type { RejectionError } from "../tunnel-connection.ts";

export interface Command {
  /** Lines of the help text: how the command is called, and what it does. */
  usage: (readonly [call: string, summary: string])[];
  options: Record<string, OptionSpec>;
  /**
   * @param args the arguments after the command's name.
   * @returns the exit code: 0 when the user stopped it, 1 when the server rejected it permanently.
   */
  run(args: string[]): Promise<number>;
}

/** Of every command that uses the API. */
export const API_OPTIONS = {
  server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
  "token-file": { kind: "text", value: "FILE", help: "a file with the capability token's bytes" },
} as const satisfies Record<string, OptionSpec>;

export const JSON_OPTION = {
  json: { kind: "flag", help: "print one JSON object per line" },
} as const satisfies Record<string, OptionSpec>;

export const LOG_LEVEL_OPTION = {
  "log-level": {
    kind: "text",
    value: "LEVEL",
    help: "error, warn, info (default) or debug",
    parse: parseLevel,
  },
} as const satisfies Record<string, OptionSpec>;

export const INSECURE_UPSTREAM_OPTION = {
  "insecure-upstream": { kind: "flag", help: "accept any certificate of a local https server" },
} as const satisfies Record<string, OptionSpec>;

function parseLevel(text: string, option: string): Level {
  const level = LEVELS.find((known) => known === text);
  if (!level) throw new UsageError(`${option} must be one of ${LEVELS.join(", ")}, not ${text}`);
  return level;
}

interface Stoppable {
  on(event: "rejected", listener: (rejection: RejectionError) => void): unknown;
  start(): Promise<void> | void;
  close(): Promise<void> | void;
}

/** @returns the exit code. */
export function runUntilStopped(tunnel: Stoppable, output: Output): Promise<number> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
      void Promise.resolve(tunnel.close()).then(() => {
        output.end();
        resolve(0);
      });
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
    stopWithNpx(stop);
    tunnel.on("rejected", (rejection) => {
      output.end(rejection);
      resolve(1);
    });
    Promise.resolve(tunnel.start()).catch(reject);
  });
}
