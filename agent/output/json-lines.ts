/** For programs: one JSON object a line on standard output. */
import type { Target } from "../target.ts";
import type { AgentTunnel, Rejected } from "../tunnel.ts";

export class JsonLines {
  constructor(tunnel: AgentTunnel, target: Target) {
    tunnel.on("ready", ({ tunnelId, url }) =>
      print({ event: "ready", tunnelId, url, local: target.origin }),
    );
    tunnel.on("request", ({ method, path, status, durationMs, problem }) =>
      print({ event: "request", method, path, status, durationMs, problem }),
    );
    tunnel.on("disconnected", (reason) => print({ event: "disconnected", reason }));
    tunnel.on("retrying", (reason, inMs) =>
      print({ event: "retrying", reason, inMs: Math.round(inMs) }),
    );
    tunnel.on("stopped", (explanation) =>
      print({ event: "disconnected", reason: `tunnel_stopped: ${explanation}` }),
    );
    tunnel.on("reconnected", () => print({ event: "reconnected" }));
    tunnel.on("notice", (message) => print({ event: "notice", message }));
  }

  end(rejection?: Rejected): void {
    if (rejection)
      print({ event: "rejected", reason: rejection.reason, message: rejection.message });
  }
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
