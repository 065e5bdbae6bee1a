/**
 * The settings of contract.md §2 that the Worker itself uses, parsed and checked. The self-hosted server
 * checks them with the same schema before it starts anything.
 */
import { z } from "zod";
import { apiHostsOf } from "./hosts.ts";

const flag = z.enum(["true", "false"]).transform((value) => value === "true");
const hostName = z
  .string()
  .regex(/^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i)
  .transform((host) => host.toLowerCase());

export const PLANS = ["free", "pro", "team", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

export const Settings = z.object({
  SERVICE_DOMAIN: hostName.default("localhost"),
  API_HOSTS: z.string().min(1).optional(),
  PUBLIC_SCHEME: z.enum(["http", "https"]).default("http"),
  PUBLIC_PORT: z.coerce.number().int().min(1).max(65_535).optional(),
  TRUST_PROXY: flag.default(false),
  HOSTED: flag.default(false),
  DEFAULT_PLAN: z.enum(PLANS).default("free"),
  TRIAL_DAYS: z.coerce.number().int().min(0).max(365).default(0),
  REQUIRE_ORG_APPROVAL: flag.default(false),
  AUTH_RATE_LIMIT: z.enum(["on", "off"]).default("on"),
  MAIL_FROM: z.string().min(3).default("Underpass <underpass@localhost>"),
  /** Base64 of 32 bytes: seals what must be readable again. */
  ENCRYPTION_KEY: z.base64().refine((key) => atob(key).length === 32, "must be 32 bytes in base64"),
  /** A private JWK, or a set of them: the first signs, all of them verify. ES256 (P-256). */
  JWT_PRIVATE_KEY: z.string().min(1),
  /** The same for capability tokens: Ed25519. */
  TOKEN_SIGNING_KEY: z.string().min(1),
  /** SHA-256 in hex of the code that makes the first account of a self-hosted server. */
  SETUP_CODE_HASH: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});

export interface Config extends Omit<z.output<typeof Settings>, "API_HOSTS"> {
  API_HOSTS: ReadonlySet<string>;
  /** `http://localhost:8787`: where people and the API's own links go. No trailing slash. */
  publicOrigin: string;
}

const configs = new WeakMap<object, Config>();

/** @throws z.ZodError when a setting is missing or wrong. */
export function configOf(env: object): Config {
  let config = configs.get(env);
  if (!config) {
    config = parseConfig(env);
    configs.set(env, config);
  }
  return config;
}

function parseConfig(env: object): Config {
  const settings = Settings.parse(env);
  const { SERVICE_DOMAIN: domain } = settings;
  const apiHosts = apiHostsOf(domain, settings.API_HOSTS);
  return {
    ...settings,
    API_HOSTS: new Set(apiHosts),
    publicOrigin: `${settings.PUBLIC_SCHEME}://${apiHosts[0]}${portSuffix(settings)}`,
  };
}

function portSuffix({
  PUBLIC_SCHEME,
  PUBLIC_PORT,
}: Pick<Config, "PUBLIC_SCHEME" | "PUBLIC_PORT">): string {
  const standard = PUBLIC_SCHEME === "https" ? 443 : 80;
  return PUBLIC_PORT === undefined || PUBLIC_PORT === standard ? "" : `:${PUBLIC_PORT}`;
}

/** The public address of a host, with the scheme and port that visitors use. No trailing slash. */
export function publicUrl(config: Config, host: string): string {
  return `${config.PUBLIC_SCHEME}://${host}${portSuffix(config)}`;
}
