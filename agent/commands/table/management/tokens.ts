import { TOKEN_TTL_MAX_HOURS } from "../../../../protocol/limits.ts";
import { SUBDOMAIN_WILDCARD } from "../../../../protocol/names.ts";
import { UsageError } from "../../../options.ts";
import { API_OPTIONS } from "../../../options/access-options.ts";
import { JSON_OPTION, YES_OPTION, type CommandSpec } from "../../command.ts";
import { listTokenArguments } from "../list-arguments.ts";

const LIST_OPTIONS = {
  all: { kind: "flag", help: "also tokens that were revoked or have expired" },
  ...API_OPTIONS,
  ...JSON_OPTION,
} as const satisfies CommandSpec["options"];

const OUTPUT_OPTION = {
  output: {
    kind: "text",
    placeholder: "FILE",
    help: "write the token's bytes to a new file that only you can read, for --token-file",
    complete: "file",
  },
} as const satisfies CommandSpec["options"];

const ACCESS =
  "Needs an access token of a signed-in user in UNDERPASS_ACCESS_TOKEN (POST /auth/login, which the server describes at /docs; valid for 15 minutes): the token of a machine can't change tokens. The dashboard's page of tokens needs none: `underpass open`.";
const NAMED = "Name the token by its name, its nonce, or the beginning of its nonce.";

export const TOKENS = {
  name: "tokens",
  summary: "list, mint, rotate and revoke the tokens of machines",
  usages: ["tokens"],
  description: [
    "Without a subcommand, it lists the valid tokens of your organization, newest first. The list never contains their bytes.",
    "To give another machine a token, run `underpass login` there. Use `mint` for machines without a user, and for tokens with restrictions.",
  ].join("\n\n"),
  examples: [
    ["underpass tokens", "all valid tokens"],
    ["underpass tokens --all", "also those that were revoked or have expired"],
  ],
  options: LIST_OPTIONS,
} as const satisfies CommandSpec;

export const TOKENS_LIST = {
  name: "list",
  summary: "list the valid tokens of your organization, newest first",
  usages: ["tokens list"],
  options: LIST_OPTIONS,
} as const satisfies CommandSpec;

export const TOKENS_MINT = {
  name: "mint",
  summary: "mint a token for a machine",
  usages: ["tokens mint <name>"],
  description: [
    "Needs an access token of a signed-in user in UNDERPASS_ACCESS_TOKEN, or with --project a master key. The dashboard's page of tokens needs none: `underpass open`.",
    "Without --output, it prints the token's bytes in base64, once.",
  ].join("\n\n"),
  examples: [
    ["underpass tokens mint ci --output ci.token", "for `underpass http --token-file ci.token`"],
    [
      "underpass tokens mint ci --project staging --valid-for 12h --output ci.token",
      "for one project",
    ],
    [
      "underpass tokens mint demo --allowed-subdomain demo --budget 5",
      "for one name, up to 5 USD a month",
    ],
  ],
  options: {
    "valid-for": {
      kind: "text",
      placeholder: "TIME",
      help: "how long it is valid: 12h, 90d (default: 24h; 1h with a master key)",
      complete: ["12h", "30d", "90d"],
      parse: parseHours,
    },
    "allowed-subdomain": {
      kind: "list",
      placeholder: "NAME",
      help: "a name that it may use, with * for any characters (default: all)",
      parse: parsePattern,
    },
    project: { kind: "text", placeholder: "PROJECT", help: "the only project that it may use" },
    tunnels: {
      kind: "text",
      placeholder: "N",
      help: "how many tunnels may be connected at the same time (default: 5)",
      parse: parseCount,
    },
    bandwidth: {
      kind: "text",
      placeholder: "MBPS",
      help: "Mbit/s of each tunnel in each direction (default: 100)",
      parse: parseCount,
    },
    budget: {
      kind: "text",
      placeholder: "USD",
      help: "the maximum cost of its traffic in a month: 5, 2.50 (default: no limit)",
      parse: parseCents,
    },
    ...OUTPUT_OPTION,
    ...API_OPTIONS,
    ...JSON_OPTION,
  },
} as const satisfies CommandSpec;

export const TOKENS_ROTATE = {
  name: "rotate",
  summary: "replace a token: the old one stops working at once",
  usages: ["tokens rotate <token>"],
  description: `${NAMED}\n\n${ACCESS}`,
  listArguments: listTokenArguments,
  options: { ...OUTPUT_OPTION, ...YES_OPTION, ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const TOKENS_REVOKE = {
  name: "revoke",
  summary: "revoke a token, and disconnect its agents",
  usages: ["tokens revoke <token>"],
  description: `${NAMED}\n\n${ACCESS}`,
  listArguments: listTokenArguments,
  options: { ...YES_OPTION, ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

function parsePattern(text: string, option: string): string {
  if (SUBDOMAIN_WILDCARD.test(text)) return text;
  throw new UsageError(
    `${option} must have 1 to 63 lower-case letters, digits, hyphens or * wildcards, not ${text}`,
  );
}

function parseHours(text: string, option: string): number {
  const [, count, unit] = /^(\d{1,5})([hd])$/.exec(text) ?? [];
  const hours = Number(count) * (unit === "d" ? 24 : 1);
  if (count !== undefined && hours >= 1 && hours <= TOKEN_TTL_MAX_HOURS) return hours;
  const max = `${TOKEN_TTL_MAX_HOURS / 24}d`;
  throw new UsageError(
    `${option} must be hours or days such as 12h or 90d, at most ${max}, not ${text}`,
  );
}

function parseCount(text: string, option: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`${option} must be a whole number from 1, not ${text}`);
}

/** US dollars to cents, without the rounding of floating-point numbers. */
function parseCents(text: string, option: string): number {
  const [, dollars, cents = ""] = /^(\d{1,7})(?:\.(\d{1,2}))?$/.exec(text) ?? [];
  if (dollars !== undefined) return Number(dollars) * 100 + Number(cents.padEnd(2, "0"));
  throw new UsageError(`${option} must be an amount in USD such as 5 or 2.50, not ${text}`);
}
