/** Prints for all commands: JSON for programs, lines for logs, and why a command ended. */
import { DRAIN_TIMEOUT_MS } from "../../protocol/limits.ts";
import {
  escapeControls,
  escapeControlsInJson,
  escapeControlsInLines,
} from "../../shared/text/escape-controls.ts";
import type { RejectionError } from "../rejection-error.ts";

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

/** Prints a line with colours, in which texts from elsewhere are escaped already. */
export function printColoredLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Prints one line or several to standard error, escaped like `printLine`. */
export function printError(text: string): void {
  process.stderr.write(`underpass: ${escapeControlsInLines(text)}\n`);
}

export type EventPrinter = (value: { event: string; [field: string]: unknown }) => void;

/**
 * @param tunnel its name, when one process serves several.
 * @returns a function that prints events, with the name as their field `tunnel`.
 */
export function createEventPrinter(tunnel?: string): EventPrinter {
  if (tunnel === undefined) return printJson;
  return ({ event, ...fields }) => printJson({ event, tunnel, ...fields });
}

/**
 * @param tunnel its name, when one process serves several: each line starts with it.
 * @returns a function that prints the lines whose level `level` includes.
 */
export function createLinePrinter(
  level: Level,
  tunnel?: string,
): (lineLevel: Level, text: string) => void {
  const prefix = tunnel === undefined ? "" : `[${tunnel}] `;
  return (lineLevel, text) => {
    if (LEVELS.indexOf(lineLevel) <= LEVELS.indexOf(level)) printLine(prefix + text);
  };
}

export function printStoppingJson(countOpen: () => number): void {
  printJson({ event: "stopping", openRequests: countOpen() });
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
export function printRejectionJson(rejection: RejectionError | undefined): void {
  if (!rejection) return;
  printJson({ event: "rejected", reason: rejection.reason, message: rejection.message });
}

/** Prints the rejection and what to do about it to standard error; nothing when the user stopped the command. */
export function printRejectionLines(
  rejection: RejectionError | undefined,
  advice = TUNNEL_ADVICE,
): void {
  if (rejection) printError(formatRejection(rejection, advice));
}

/** The next step of the user after a rejection, by its reason. */
export type Advice = Readonly<Record<string, string>>;

/** For the reasons that do not depend on the command. */
export const GENERAL_ADVICE = {
  BUDGET_EXCEEDED: "An owner or admin can raise the monthly budget.",
  protocol_error:
    "Agent and server can't understand each other. Update the agent: npm install -g underpass",
  unsupported_version: "Update the agent: npm install -g underpass",
} satisfies Advice;

const TUNNEL_ADVICE: Advice = {
  ...GENERAL_ADVICE,
  domain_in_use:
    "Leave out --project, or bind the domain to this project's tunnel through the API.",
  domain_not_found: "Add the domain in the dashboard, and verify it: underpass open",
  domain_not_verified:
    "Publish the domain's TXT record in the DNS, and verify it in the dashboard: underpass open",
  duplicate_name: "Choose another name with --subdomain or --url, or stop the other agent.",
  forbidden: "Use a name that the token allows, or a token without restrictions: underpass login",
  quota_exceeded: "Stop another tunnel of this token first.",
  replaced: "A newer agent with the same token serves this name now.",
  tunnel_deleted: "Run the command again to make a new tunnel.",
  tunnel_expired:
    "Run the command again to make a new tunnel. Its --ttl, or else the plan, decides when it expires.",
  upgrade_required: "Without --basic-auth, the tunnel can be used with this plan.",
  invalid_request: "Correct the option, and run the command again.",
};

/** Where the reason alone does not say what to do: what the server's message begins with or contains. */
const ADVICE_BY_MESSAGE: readonly { reason: string; message: RegExp; advice: string }[] = [
  {
    reason: "duplicate_name",
    message: /^port \d+ is taken by /,
    advice:
      "To serve that tunnel again, name it with --subdomain. Otherwise choose another port with --remote-port.",
  },
  {
    reason: "duplicate_name",
    message: /^port \d+ is taken/,
    advice: "Choose another port with --remote-port, or leave it out for a free one.",
  },
  {
    reason: "duplicate_name",
    message: / reserved for the service$| is taken$|^free from /,
    advice: "Choose another name with --subdomain or --url.",
  },
  {
    reason: "duplicate_name",
    message: /^a pool of agents /,
    advice: "Otherwise choose another name with --subdomain or --url, or stop the other agents.",
  },
  {
    reason: "quota_exceeded",
    message: /^\d+ agents serve this tunnel already$/,
    advice: "Stop another agent of the pool first.",
  },
  {
    reason: "quota_exceeded",
    message: /^An organization can have at most \d+ tunnels /,
    advice: "Delete tunnels that are not needed: underpass tunnels delete NAME",
  },
  {
    reason: "quota_exceeded",
    message: /^An organization can make at most /,
    advice: "Run the command again later, or use a tunnel that exists already.",
  },
  {
    reason: "quota_exceeded",
    message: /share of the relay's ports$/,
    advice:
      "Use a TCP tunnel that has a port already, or delete one; its port may count for another 24 hours: underpass tunnels delete NAME",
  },
  {
    reason: "invalid_request",
    message: /port ranges? of the relay/,
    advice: "Choose another port with --remote-port, or leave it out for a free one.",
  },
  {
    reason: "forbidden",
    message: /^the token allows only /,
    advice:
      "Choose such a name with --subdomain, with any letters in place of *, or get a token without restrictions: underpass login",
  },
  {
    reason: "forbidden",
    message: /^the project does not exist$/,
    advice: "Correct --project, or create the project in the dashboard: underpass open",
  },
  {
    reason: "forbidden",
    message: /waiting for approval$/,
    advice: "Ask the operator of the server to approve it.",
  },
  {
    reason: "forbidden",
    message: /IP allowlist$/,
    advice: "Connect from an address of the list, or ask the tunnel's owner to add yours.",
  },
  {
    reason: "invalid_request",
    message: /^the tunnel is an HTTP tunnel/,
    advice: "Open its URL in a browser: `underpass tunnels` lists the URLs.",
  },
  {
    reason: "invalid_request",
    message: / is an? (?:HTTP|TCP) tunnel, not /,
    advice: "Choose another name with --subdomain, or delete that tunnel: underpass tunnels delete",
  },
];

type Rejection = Pick<RejectionError, "reason" | "message"> & {
  renewal?: string | undefined;
};

/** With the reason's code, which the documentation and `--json` name. */
export function formatRejection(rejection: Rejection, adviceByReason = TUNNEL_ADVICE): string {
  return `${rejection.reason}: ${addAdvice(rejection, adviceByReason)}`;
}

export function addAdvice(rejection: Rejection, adviceByReason = TUNNEL_ADVICE): string {
  const { reason, message, renewal } = rejection;
  if (renewal !== undefined) return `${message}\n${renewal}`;
  // Some messages say so already. The advice about versions is for the agent, and one message is about the server.
  const isComplete =
    message.includes("underpass login") || message.startsWith("the server is too old");
  const special = ADVICE_BY_MESSAGE.find(
    (row) => row.reason === reason && row.message.test(message),
  );
  const advice = isComplete ? undefined : (special?.advice ?? adviceByReason[reason]);
  return advice === undefined ? message : `${message}\n${advice}`;
}
