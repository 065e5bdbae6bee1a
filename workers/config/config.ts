/**
 * The settings that the Worker itself uses, parsed and validated. A self-hosted server validates them with the same
 * schema before it starts anything.
 */
import { TRACE_MODES } from "../../shared/tracing/request-trace.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";
import { z } from "zod";
import { RELAY_SECRET_MIN_CHARS } from "../../protocol/relay/settings.ts";
import {
  getPublicAddress,
  parseApiHosts,
  parseHostList,
  type PublicAddress,
} from "../../protocol/public-address.ts";
import { BILLING_MODES } from "../../protocol/schemas/billing.ts";
import { parseMailbox } from "./mailbox.ts";
import { parseSmtpUrl } from "./smtp-server.ts";
import { PLANS } from "../../protocol/plans.ts";

/** Also matches IPv4 addresses. */
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;
const IPV6_HOST = /^\[[0-9a-f:.]+\]$/i;

/** In decimal digits: a plain conversion would also accept `1e3` and `0x50`. */
export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d{1,15}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .pipe(z.int().min(min).max(max));

const flag = z.enum(["true", "false"]).transform((value) => value === "true");
const hostName = z
  .string()
  .regex(HOST_NAME, "must be a host name such as tunnels.example.com")
  .transform((host) => host.toLowerCase());

/** A URL that the operator configures. */
const webUrl = z.url({
  protocol: /^https?$/,
  error: "must be a URL that starts with http:// or https://",
});
const text = z.string().min(1);

export const smtpUrl = z.string().transform((text, context) => {
  const server = parseSmtpUrl(text);
  if (server) return server;
  context.addIssue(
    "must be a URL like smtp://user:password@host:port or smtps://user:password@host:port; ?timeout= at its end is 1 to 25 seconds",
  );
  return z.NEVER;
});
const mailbox = z.string().transform((text, context) => {
  const read = parseMailbox(text);
  if (read) return read;
  context.addIssue("must be an email address, or a name and an address: Name <address>");
  return z.NEVER;
});

/** 32 bytes each in base64, separated by commas: the first key encrypts and hashes, the others only decrypt and verify. */
export const encryptionKeys = z.string().transform((list, context) => {
  const keys = list.split(",").map((key) => key.trim());
  if (keys.every((key) => base64.safeParse(key).success && atob(key).length === 32)) return keys;
  context.addIssue("must be 32 bytes in base64, or several such keys separated by commas");
  return z.NEVER;
});
const base64 = z.base64();

export const Settings = z.object({
  SERVICE_DOMAIN: hostName.default("localhost"),
  API_HOSTS: z
    .string()
    .refine(
      (list) => {
        const hosts = parseHostList(list);
        return (
          hosts.length > 0 && hosts.every((host) => HOST_NAME.test(host) || IPV6_HOST.test(host))
        );
      },
      { error: "must be host names separated by commas, such as example.com,api.example.com" },
    )
    .optional(),
  PUBLIC_SCHEME: z.enum(["http", "https"]).default("http"),
  PUBLIC_PORT: wholeNumber(1, 65_535).optional(),
  TRUST_PROXY: flag.default(false),
  HOSTED: flag.default(false),
  DEFAULT_PLAN: z.enum(PLANS).default("free"),
  TRIAL_DAYS: wholeNumber(0, 365).default(0),
  BILLING_MODE: z.enum(BILLING_MODES).default("none"),
  /** The payment provider's API, if it is not at the provider's own URL. */
  PAYMENTS_API_URL: webUrl.optional(),
  PAYMENTS_SECRET_KEY: text.optional(),
  PAYMENTS_WEBHOOK_SECRET: text.optional(),
  /** The provider's ids of our prices. */
  PAYMENTS_PRICE_PRO_MONTHLY: text.optional(),
  PAYMENTS_PRICE_PRO_YEARLY: text.optional(),
  PAYMENTS_PRICE_TEAM_MONTHLY: text.optional(),
  PAYMENTS_PRICE_TEAM_YEARLY: text.optional(),
  REQUIRE_ORG_APPROVAL: flag.default(false),
  AUTH_RATE_LIMIT: z.enum(["on", "off"]).default("on"),
  /** Which requests are logged, with their id, by each part of the service that they pass. */
  TRACE_REQUESTS: z.enum(TRACE_MODES).default("off"),
  ALLOW_PRIVATE_FETCH: flag.default(false),
  /** Allows replaying captured requests of tunnels that allow it. */
  ALLOW_REPLAY: flag.default(false),
  /** An OpenID Connect provider that supports discovery. */
  IDP_A_ISSUER: webUrl.optional(),
  IDP_A_CLIENT_ID: text.optional(),
  IDP_A_CLIENT_SECRET: text.optional(),
  /** An OAuth 2 provider that serves the user's profile at `<API>/user` and `<API>/user/emails`. */
  IDP_B_AUTHORIZE_URL: webUrl.optional(),
  IDP_B_TOKEN_URL: webUrl.optional(),
  IDP_B_API_URL: webUrl.optional(),
  IDP_B_CLIENT_ID: text.optional(),
  IDP_B_CLIENT_SECRET: text.optional(),
  /** The resolver for TXT records (RFC 8484). */
  DNS_OVER_HTTPS_URL: webUrl.default("https://cloudflare-dns.com/dns-query"),
  /** Hosted: the Cloudflare zone that accepts traffic of custom domains and issues their certificates. */
  CF_API_URL: webUrl.default("https://api.cloudflare.com/client/v4"),
  CF_API_TOKEN: text.optional(),
  CF_ZONE_ID: z
    .string()
    .regex(/^[0-9a-f]{32}$/, "must be 32 hexadecimal digits in lower case")
    .optional(),
  /** The mail server of a hosted service. A self-hosted server sends mail through its gateway. */
  SMTP_URL: smtpUrl.optional(),
  /** `files`: a self-hosted server without a mail server, which writes each mail into its data directory. */
  MAIL_DELIVERY: z.enum(["smtp", "files"]).default("smtp"),
  MAIL_FROM: mailbox.prefault("Underpass <underpass@localhost>"),
  ENCRYPTION_KEY: encryptionKeys,
  /** A private JWK, or a set of them, for access tokens (ES256): the first signs, all of them verify. */
  JWT_PRIVATE_KEY: z.string().min(1),
  /** The same for capability tokens (Ed25519). */
  TOKEN_SIGNING_KEY: z.string().min(1),
  /** The secret that relays connect with. Unset: no relay can connect, so there are no private networks and TCP ports. */
  RELAY_SECRET: z.string().min(RELAY_SECRET_MIN_CHARS).optional(),
  /** SHA-256 in hex of the code that creates the first account of a self-hosted server. */
  SETUP_CODE_HASH: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits in lower case")
    .optional(),
});

const SETTING_GROUPS = [
  ["IDP_A_ISSUER", "IDP_A_CLIENT_ID", "IDP_A_CLIENT_SECRET"],
  [
    "IDP_B_AUTHORIZE_URL",
    "IDP_B_TOKEN_URL",
    "IDP_B_API_URL",
    "IDP_B_CLIENT_ID",
    "IDP_B_CLIENT_SECRET",
  ],
  ["CF_API_TOKEN", "CF_ZONE_ID"],
  [
    "PAYMENTS_SECRET_KEY",
    "PAYMENTS_WEBHOOK_SECRET",
    "PAYMENTS_PRICE_PRO_MONTHLY",
    "PAYMENTS_PRICE_PRO_YEARLY",
    "PAYMENTS_PRICE_TEAM_MONTHLY",
    "PAYMENTS_PRICE_TEAM_YEARLY",
  ],
] as const;
type GroupedSetting = (typeof SETTING_GROUPS)[number][number];

type CheckedSettings = Partial<Record<GroupedSetting, string>> &
  Partial<Pick<z.output<typeof Settings>, "HOSTED" | "BILLING_MODE">>;

/** For `superRefine`: the settings of a group must be set together. */
export function checkSettingGroups(settings: CheckedSettings, context: z.RefinementCtx): void {
  const refuse = (name: string, message: string) =>
    context.addIssue({ code: "custom", path: [name], message });
  for (const names of SETTING_GROUPS) {
    const given = names.find((name) => settings[name] !== undefined);
    if (given === undefined) continue;
    for (const name of names) {
      if (settings[name] === undefined) refuse(name, `must be set as well, because ${given} is`);
    }
  }
  const { BILLING_MODE: mode, HOSTED: hosted, PAYMENTS_SECRET_KEY: key } = settings;
  if (mode === "payments" && key === undefined) {
    refuse("BILLING_MODE", "payments requires the settings PAYMENTS_*");
  }
  // With the mock, every owner could have any plan without paying.
  if (mode === "mock" && hosted) refuse("BILLING_MODE", "mock is not allowed on a hosted service");
}

export interface Config extends Omit<z.output<typeof Settings>, "API_HOSTS"> {
  API_HOSTS: ReadonlySet<string>;
  /** The origin of the service's own links, such as `http://localhost:8787`. No trailing slash. */
  publicOrigin: string;
  portSuffix: PublicAddress["portSuffix"];
}

const configs = new WeakMap<object, Config>();

/** @throws z.ZodError when a setting is missing or invalid. */
export function getConfig(env: object): Config {
  let config = configs.get(env);
  if (!config) {
    config = parseConfig(env);
    configs.set(env, config);
  }
  return config;
}

function parseConfig(env: object): Config {
  const settings = Settings.superRefine(checkSettingGroups).parse(env);
  const { portSuffix, apiOrigin } = getPublicAddress(settings);
  return {
    ...settings,
    API_HOSTS: new Set(parseApiHosts(settings.SERVICE_DOMAIN, settings.API_HOSTS)),
    publicOrigin: apiOrigin,
    portSuffix,
  };
}

/** Tests and benchmarks turn the limits by source off; a hosted service ignores that. */
export function hasRateLimits({
  AUTH_RATE_LIMIT: setting,
  HOSTED: hosted,
}: Pick<Config, "AUTH_RATE_LIMIT" | "HOSTED">): boolean {
  return setting === "on" || hosted;
}

/** The public URL of a host, with the scheme and port that visitors use. No trailing slash. */
export function publicUrl(config: Config, host: string): string {
  return `${config.PUBLIC_SCHEME}://${host}${config.portSuffix}`;
}

/** The URL that visitors of a TCP tunnel connect to. @param host of a relay; an IPv6 address without brackets. */
export function tcpUrl(host: string, port: number): string {
  return `tcp://${formatHostAndPort(host, port)}`;
}

/** The URL of a TCP tunnel without a public port: it names the tunnel, and nothing listens there. */
export function privateTcpUrl(host: string): string {
  return `tcp://${host}`;
}
