/** The output of `underpass connect`: JSON for programs, lines for a person. */
import type { LocalConnectionReport, LocalPort } from "../connect/local-port.ts";
import {
  createLinePrinter,
  printRejectionJson,
  printRejectionLines,
  GENERAL_ADVICE,
  printEvent,
  type Advice,
  type Level,
  type Output,
} from "./output.ts";
import { formatBytes } from "./format/format-bytes.ts";
import { formatSeconds } from "./format/format-seconds.ts";
import { PROGRAM } from "../program.ts";

const ADVICE: Advice = {
  ...GENERAL_ADVICE,
  forbidden: `Use a token that is allowed to use this tunnel's name: ${PROGRAM} login`,
  not_found: `Check the tunnel's name or id: \`${PROGRAM} tunnels\` lists them.`,
  address_not_allowed:
    "Connect from an address of the list, or ask the tunnel's owner to add yours.",
  wrong_protocol: `Open its URL in a browser: \`${PROGRAM} tunnels\` lists the URLs.`,
  tunnel_deleted: `Create a new tunnel with \`${PROGRAM} tcp\`.`,
  tunnel_expired: `Create a new tunnel with \`${PROGRAM} tcp\`.`,
};

export function printConnectJson(local: LocalPort, tunnel: string): Output {
  local.on("ready", ({ tunnelId, address, port }) =>
    printEvent({ event: "ready", tunnelId, tunnel, local: address, port }),
  );
  local.on("connection", (connection) => printEvent({ event: "connection", ...connection }));
  local.on("notice", (message) => printEvent({ event: "notice", message }));
  return { end: (rejection) => printRejectionJson(rejection) };
}

export function printConnectLines(local: LocalPort, tunnel: string, level: Level): Output {
  const print = createLinePrinter(level);
  local.on("ready", ({ address }) => print("error", `Listening on ${address} -> ${tunnel}`));
  local.on("connection", (connection) =>
    print(connection.problem === undefined ? "info" : "warn", formatConnection(connection)),
  );
  local.on("notice", (message) => print("warn", message));
  return { end: (rejection) => printRejectionLines(rejection, ADVICE) };
}

function formatConnection({
  durationMs,
  bytesIn,
  bytesOut,
  problem,
}: LocalConnectionReport): string {
  const bytes = `${formatBytes(bytesIn)} sent, ${formatBytes(bytesOut)} received`;
  const why = problem === undefined ? "" : `: ${problem}`;
  return `connection ${why === "" ? "closed" : "failed"} after ${formatSeconds(durationMs)}, ${bytes}${why}`;
}
