/** Prints for all commands: JSON for programs, lines for logs, and why a command ended. */
import { DRAIN_TIMEOUT_MS } from "../../protocol/limits.ts";
import type { CloseSubcode } from "../../protocol/wire/close-reason.ts";
import {
  escapeControls,
  escapeControlsInJson,
  escapeControlsInLines,
} from "../../shared/text/escape-controls.ts";
import type { RejectionError } from "../rejection-error.ts";
import { isJournal } from "./journal.ts";
import { formatUpdateAdvice } from "../update-advice.ts";
import { PROGRAM } from "../program.ts";

const STDOUT_FD = 1;

export interface Output {
  /**
   * Says that the command stops when its open requests have ended. Left out where nothing is waited for.
   * @param countOpen how many they are now.
   */
  stopping?(countOpen: () => number): void;
  /** Prints the end. @param rejection why the server ended it; undefined when the user stopped it. */
  end(rejection?: RejectionError): void;
}

/** Each level includes those before it. The URL, without which a tunnel is useless, is printed at every level. */
export const LEVELS = ["error", "warn", "info", "debug"] as const;
export type Level = (typeof LEVELS)[number];

/**
 * Prints a value on one line. The output may be a terminal, and texts of servers and visitors may be parts of the value: they
 * can't control the terminal.
 */
export function printJson(value: object): void {
  process.stdout.write(`${escapeControlsInJson(JSON.stringify(value))}\n`);
}

/** Prints a value on several lines, like `printJson`. */
export function printIndentedJson(value: object): void {
  process.stdout.write(`${escapeControlsInJson(JSON.stringify(value, null, 2))}\n`);
}

/** Texts of servers and visitors may be parts of the line: they can't control the terminal. */
export function printLine(text: string): void {
  process.stdout.write(`${escapeControls(text)}\n`);
}

/** Prints a line with colors, in which texts from elsewhere are escaped already. */
export function printColoredLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Prints one line or several to standard error, escaped like `printLine`. */
export function printError(text: string): void {
  process.stderr.write(`underpass: ${escapeControlsInLines(text)}\n`);
}

export type EventPrinter = (value: { event: string; [field: string]: unknown }) => void;

/** Prints an event of a command that runs until it is stopped, with the time. */
export const printEvent: EventPrinter = ({ event, ...fields }) =>
  printJson({ event, time: new Date().toISOString(), ...fields });

/**
 * @param tunnel its name, when one process serves several.
 * @returns a function that prints events, with the name as their field `tunnel`.
 */
export function createEventPrinter(tunnel?: string): EventPrinter {
  if (tunnel === undefined) return printEvent;
  return ({ event, ...fields }) => printEvent({ event, tunnel, ...fields });
}

/**
 * Lines of a log begin with the time; those at a terminal, and in systemd's journal, do not.
 * @param tunnel its name, when one process serves several: each line names it.
 * @returns a function that prints the lines whose level `level` includes.
 */
export function createLinePrinter(
  level: Level,
  tunnel?: string,
): (lineLevel: Level, text: string) => void {
  const prefix = tunnel === undefined ? "" : `[${tunnel}] `;
  const hasTime = !process.stdout.isTTY && !isJournal(STDOUT_FD);
  return (lineLevel, text) => {
    if (LEVELS.indexOf(lineLevel) > LEVELS.indexOf(level)) return;
    const time = hasTime ? `${new Date().toISOString()} ` : "";
    printLine(time + prefix + text);
  };
}

export function printStoppingJson(countOpen: () => number): void {
  printEvent({ event: "stopping", openRequests: countOpen() });
}

/** Prints it also with `--log-level error`: it answers the user's key. */
export function printStoppingLine(countOpen: () => number): void {
  printLine(`${formatStopping(countOpen())}; press Ctrl+C again to quit now`);
}

/** `stopping: 2 requests are open, and may finish within 10 s` */
export function formatStopping(openRequests: number): string {
  const open = openRequests === 1 ? "1 request is open" : `${openRequests} requests are open`;
  return `stopping: ${open}, and may finish within ${DRAIN_TIMEOUT_MS / 1_000} s`;
}

/** Prints nothing when the user stopped the command. */
export function printRejectionJson(
  rejection: RejectionError | undefined,
  print: EventPrinter = printEvent,
): void {
  if (!rejection) return;
  const { reason, subcode, message } = rejection;
  print({ event: "rejected", reason, subcode, message });
}

/** Prints the rejection and what to do about it to standard error; nothing when the user stopped the command. */
export function printRejectionLines(
  rejection: RejectionError | undefined,
  advice = TUNNEL_ADVICE,
): void {
  if (rejection) printError(formatRejection(rejection, advice));
}

/**
 * The next step of the user after a rejection, by its subcode or, where that has no row of its own, its reason. Left out where
 * the message says it.
 */
export type Advice = Readonly<Record<string, NextStep>>;
type NextStep = string | ((rejection: Rejection) => string);

/** For rejections whose advice does not depend on the command. */
export const GENERAL_ADVICE = {
  BUDGET_EXCEEDED: "An owner or admin can raise the monthly budget.",
  protocol_error: ({ server }: Rejection) =>
    `The versions of the agent and the server may not fit together. ${formatUpdateAdvice(server)}`,
  agent_too_old: ({ server }: Rejection) => formatUpdateAdvice(server),
  organization_not_approved: "Ask the operator of the server to approve it.",
} satisfies Advice & Partial<Record<CloseSubcode, NextStep>>;

const SUBCODE_ADVICE = {
  name_unavailable: "Choose another name with --subdomain or --url.",
  port_taken: "Choose another port with --remote-port, or leave it out for a free one.",
  port_of_own_tunnel:
    "To serve that tunnel again, name it with --subdomain. Otherwise choose another port with --remote-port.",
  pool_serves: "Otherwise choose another name with --subdomain or --url, or stop the other agents.",
  pool_full: "Stop another agent of the pool first.",
  tunnel_limit: `Delete tunnels that are not needed: ${PROGRAM} tunnels delete NAME`,
  daily_limit: "Run the command again later, or use a tunnel that exists already.",
  port_limit: `Use a TCP tunnel that has a port already, or delete one; its port may count for another 24 hours: ${PROGRAM} tunnels delete NAME`,
  port_out_of_range: "Choose another port with --remote-port, or leave it out for a free one.",
  wrong_protocol: `Choose another name with --subdomain, or delete that tunnel: ${PROGRAM} tunnels delete`,
  name_not_allowed: `Choose such a name with --subdomain, with any letters in place of *, or get a token without restrictions: ${PROGRAM} login`,
  project_not_found: `Correct --project, or create the project in the dashboard: ${PROGRAM} open`,
} satisfies Advice & Partial<Record<CloseSubcode, NextStep>>;

const TUNNEL_ADVICE: Advice = {
  ...GENERAL_ADVICE,
  ...SUBCODE_ADVICE,
  domain_in_use:
    "Leave out --project, or bind the domain to this project's tunnel through the API.",
  domain_not_found: `Add the domain in the dashboard, and verify it: ${PROGRAM} open`,
  domain_not_verified: `Publish the domain's TXT record in the DNS, and verify it in the dashboard: ${PROGRAM} open`,
  duplicate_name: "Choose another name with --subdomain or --url, or stop the other agent.",
  forbidden: `Use a name that the token allows, or a token without restrictions: ${PROGRAM} login`,
  quota_exceeded: "Stop another tunnel of this token first.",
  replaced:
    "Only one agent serves a tunnel at a time. Agents that share an HTTP tunnel need --pool.",
  tunnel_deleted: "Run the command again to make a new tunnel.",
  tunnel_expired:
    "Run the command again to make a new tunnel. Its --ttl, or else the plan, decides when it expires.",
  upgrade_required: "Without --basic-auth, the tunnel can be used with this plan.",
  invalid_request: "Correct the option, and run the command again.",
};

type Rejection = Pick<RejectionError, "reason" | "message"> &
  Partial<Pick<RejectionError, "subcode" | "renewal" | "server">>;

/** With the reason's code, which the documentation and `--json` name. */
export function formatRejection(rejection: Rejection, advice = TUNNEL_ADVICE): string {
  return `${rejection.reason}: ${addAdvice(rejection, advice)}`;
}

export function addAdvice(rejection: Rejection, advice: Advice): string {
  const { reason, subcode = "", message, renewal } = rejection;
  const topic = [subcode, reason].find((name) => Object.hasOwn(advice, name));
  const step = topic === undefined ? undefined : advice[topic];
  const next = renewal ?? (typeof step === "function" ? step(rejection) : step);
  return next === undefined ? message : `${message}\n${next}`;
}
