/** For logs: what a person would read, a line each. */
import type { Target } from "../target.ts";
import type { AgentTunnel, Rejected } from "../tunnel.ts";
import { rejectionText } from "./rejection.ts";

/** Each shows itself and what stands before it. */
export const LEVELS = ["error", "warn", "info", "debug"] as const;
export type Level = (typeof LEVELS)[number];

export class PlainLines {
  readonly #level: Level;

  constructor(tunnel: AgentTunnel, target: Target, level: Level) {
    this.#level = level;
    tunnel.on("ready", ({ url }) => {
      this.#print("info", `Forwarding ${url} -> ${target.origin}`);
      void tunnel.origin.isListening().then((listening) => {
        if (!listening)
          this.#print("warn", `nothing listens at ${target.origin} yet; waiting for it`);
      });
    });
    tunnel.on("request", ({ method, path, status, durationMs, problem }) => {
      const why = problem === undefined ? "" : ` (${problem})`;
      this.#print("info", `${status} ${method} ${path} ${durationMs} ms${why}`);
    });
    tunnel.on("disconnected", (reason) =>
      this.#print("warn", `disconnected: ${reason}; reconnecting`),
    );
    tunnel.on("retrying", (reason, inMs) => {
      this.#print("warn", `no connection: ${reason}; next try in ${(inMs / 1000).toFixed(1)} s`);
    });
    tunnel.on("stopped", (explanation) =>
      this.#print("warn", `${explanation}; waiting until it is started again`),
    );
    tunnel.on("reconnected", ({ url }) => this.#print("info", `reconnected: ${url}`));
    tunnel.on("notice", (message) => this.#print("warn", message));
  }

  end(rejection?: Rejected): void {
    if (rejection) process.stderr.write(`underpass: ${rejectionText(rejection)}\n`);
  }

  #print(level: Level, text: string): void {
    if (LEVELS.indexOf(level) <= LEVELS.indexOf(this.#level)) process.stdout.write(`${text}\n`);
  }
}
