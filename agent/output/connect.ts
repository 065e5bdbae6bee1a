/** What `underpass connect` prints: JSON for programs, lines for a person. */
import type { EndedConnection, LocalPort } from "../connect/local-port.ts";
import type { Rejected } from "../tunnel-connection.ts";
import { printJson } from "./json-lines.ts";
import { harmless } from "./picture.ts";
import { LEVELS, type Level } from "./plain-lines.ts";
import { rejectionText } from "./rejection.ts";
import { formatBytes } from "./tcp.ts";

export interface ConnectOutput {
  /** What the person reads last. */
  end(rejection?: Rejected): void;
}

export function connectJson(local: LocalPort, tunnel: string): ConnectOutput {
  local.on("ready", ({ tunnelId, address, port }) =>
    printJson({ event: "ready", tunnelId, tunnel, local: address, port }),
  );
  local.on("connection", (connection) => printJson({ event: "connection", ...connection }));
  local.on("notice", (message) => printJson({ event: "notice", message }));
  return {
    end(rejection) {
      if (!rejection) return;
      printJson({ event: "rejected", reason: rejection.reason, message: rejection.message });
    },
  };
}

export function connectLines(local: LocalPort, tunnel: string, level: Level): ConnectOutput {
  const print = (of: Level, text: string): void => {
    if (LEVELS.indexOf(of) <= LEVELS.indexOf(level)) process.stdout.write(`${text}\n`);
  };
  local.on("ready", ({ address }) => print("info", `Listening on ${address} -> ${tunnel}`));
  local.on("connection", (connection) =>
    print(connection.problem === undefined ? "info" : "warn", connectionLine(connection)),
  );
  local.on("notice", (message) => print("warn", harmless(message)));
  return {
    end(rejection) {
      if (rejection) process.stderr.write(`underpass: ${rejectionText(rejection)}\n`);
    },
  };
}

function connectionLine({ durationMs, bytesIn, bytesOut, problem }: EndedConnection): string {
  const seconds = (durationMs / 1000).toFixed(durationMs < 10_000 ? 2 : 0);
  const bytes = `${formatBytes(bytesIn)} sent, ${formatBytes(bytesOut)} received`;
  const why = problem === undefined ? "" : `: ${harmless(problem)}`;
  return `connection ${why === "" ? "ended" : "broke"} after ${seconds} s, ${bytes}${why}`;
}
