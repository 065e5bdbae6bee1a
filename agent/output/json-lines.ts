/** For programs: one JSON object a line on standard output. */
import type { Target } from "../target.ts";
import type { AgentTunnel, Rejected } from "../tunnel.ts";

export class JsonLines {
  constructor(tunnel: AgentTunnel, target: Target) {
    tunnel.on("ready", ({ tunnelId, url }) =>
      printJson({ event: "ready", tunnelId, url, local: target.origin }),
    );
    tunnel.on("request", ({ method, path, status, durationMs, problem }) =>
      printJson({ event: "request", method, path, status, durationMs, problem }),
    );
    tunnel.on("disconnected", (reason) => printJson({ event: "disconnected", reason }));
    tunnel.on("retrying", (reason, inMs) =>
      printJson({ event: "retrying", reason, inMs: Math.round(inMs) }),
    );
    tunnel.on("stopped", (explanation) =>
      printJson({ event: "disconnected", reason: `tunnel_stopped: ${explanation}` }),
    );
    tunnel.on("reconnected", () => printJson({ event: "reconnected" }));
    tunnel.on("notice", (message) => printJson({ event: "notice", message }));
  }

  end(rejection?: Rejected): void {
    if (rejection)
      printJson({ event: "rejected", reason: rejection.reason, message: rejection.message });
  }
}

export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
