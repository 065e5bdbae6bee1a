/**
 * The settings of a self-hosted server, from the environment and `.env`. All of them are validated before anything
 * starts, so that a mistake is reported at once.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { z } from "zod";
import {
  RELAY_PORT_RANGE_DEFAULT,
  RELAY_SECRET_MIN_CHARS,
  RelayHost,
  RelayPortRange,
  RelayUrl,
} from "../protocol/relay/settings.ts";
import type { TraceMode } from "../shared/tracing/request-trace.ts";
import { getErrorCode, getErrorMessage } from "../shared/error-message.ts";
import { readGivenValues } from "../shared/environment.ts";
import { stripBrackets } from "../shared/hosts.ts";
import { describeIssue } from "../protocol/schemas/issue-messages.ts";
import {
  checkSettingGroups,
  Settings as WorkerSettings,
  smtpUrl,
  wholeNumber,
} from "../workers/config/config.ts";
import { parseApiHosts } from "../protocol/public-address.ts";
import type { SmtpServer } from "../workers/config/smtp-server.ts";
import { StartError } from "./errors.ts";
import type { ConnectionLimits } from "./front-proxy/limits.ts";

z.config({ customError: describeIssue });

const flag = z.enum(["true", "false"]);
const url = (protocol: RegExp, start: string) =>
  z.url({ protocol, error: `must be a URL that starts with ${start}` });
const text = z.string().min(1);
const count = wholeNumber(1, 1_000_000);
const secret = (minChars: number) =>
  z.string().min(minChars, `must have at least ${minChars} characters`);
const METRICS_TOKEN_MIN_CHARS = 32;
const LETS_ENCRYPT_DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory";
const MEGABYTE = 1_000_000;

/** Settings that only this process uses, and the Worker does not get. */
const ServerOnlySettings = z.object({
  HOST: RelayHost.default("127.0.0.1"),
  /** 0: any free port. */
  PORT: wholeNumber(0, 65_535).default(8787),
  /** undefined: only plain HTTP. 0: any free port. */
  HTTPS_PORT: wholeNumber(0, 65_535).optional(),
  /** undefined: all addresses. */
  HTTPS_HOST: RelayHost.optional(),
  HTTPS_CERTIFICATE_FILE: text.optional(),
  HTTPS_KEY_FILE: text.optional(),
  /** Certificates for hosts that the one in the file is not for. */
  ACME: z.enum(["on", "off"]).default("off"),
  ACME_EMAIL: z.email().optional(),
  ACME_DIRECTORY_URL: url(/^https?$/, "https://").default(LETS_ENCRYPT_DIRECTORY),
  /** Redirects to HTTPS. undefined: no port does. 0: any free port. */
  HTTP_REDIRECT_PORT: wholeNumber(0, 65_535).optional(),
  DATA_DIR: text.default(".underpass"),
  /** undefined: by the size of the disk. 0: none. */
  DISK_RESERVE_MB: wholeNumber(0, 1_000_000_000).optional(),
  DATABASE_URL: url(/^postgres(ql)?$/, "postgresql://").optional(),
  SMTP_URL: smtpUrl.optional(),
  ALLOW_PRIVATE_FETCH: flag.default("false"),
  MAX_CONNECTIONS: count.optional(),
  MAX_CONNECTIONS_PER_ADDRESS: count.optional(),
  /** undefined: no metrics are served. 0: any free port. */
  METRICS_PORT: wholeNumber(0, 65_535).optional(),
  METRICS_HOST: RelayHost.default("127.0.0.1"),
  METRICS_TOKEN: secret(METRICS_TOKEN_MIN_CHARS).optional(),
  /** The relay that is started with the server. */
  LOCAL_RELAY: z.enum(["on", "off"]).default("on"),
  /** undefined: with HTTPS the API's host, which leads to this machine; otherwise only this machine reaches the relay. */
  RELAY_HOST: RelayHost.optional(),
  RELAY_PORT_RANGE: RelayPortRange.prefault(RELAY_PORT_RANGE_DEFAULT),
  RELAY_BIND: RelayHost.optional(),
  RELAY_URL: RelayUrl.optional(),
});

/** The Worker's own settings. Secrets are optional, because missing ones are generated. */
const SelfHostedWorkerSettings = WorkerSettings.omit({
  HOSTED: true,
  MAIL_DELIVERY: true,
  SETUP_CODE_HASH: true,
}).extend({
  ENCRYPTION_KEY: WorkerSettings.shape.ENCRYPTION_KEY.optional(),
  JWT_PRIVATE_KEY: WorkerSettings.shape.JWT_PRIVATE_KEY.optional(),
  TOKEN_SIGNING_KEY: WorkerSettings.shape.TOKEN_SIGNING_KEY.optional(),
  RELAY_SECRET: secret(RELAY_SECRET_MIN_CHARS).optional(),
});

const AllSettings = SelfHostedWorkerSettings.extend(ServerOnlySettings.shape);
export const SETTING_NAMES = Object.keys(AllSettings.shape);

export const SECRET_NAMES = [
  "ENCRYPTION_KEY",
  "JWT_PRIVATE_KEY",
  "TOKEN_SIGNING_KEY",
  "RELAY_SECRET",
  "METRICS_TOKEN",
] as const;
export type SecretName = (typeof SECRET_NAMES)[number];

/** Replace the Worker's defaults, which are those of the hosted service. */
const SELF_HOSTED_DEFAULTS = { DEFAULT_PLAN: "enterprise", TRIAL_DAYS: "0", BILLING_MODE: "none" };

export interface LocalRelaySettings {
  /** The public host name, for devices and visitors. */
  host: string;
  ports: RelayPortRange;
  /** The address that the relay listens on. */
  bind: string;
  /** The URL for agents; undefined: at this server, if it speaks HTTPS, or else the host and the first port. */
  url: string | undefined;
}

interface HttpsServerSettings {
  /** undefined: all addresses. */
  host: string | undefined;
  port: number;
  /** Where plain HTTP is redirected to HTTPS; undefined: nowhere. */
  redirectPort: number | undefined;
  /** Both absolute. undefined: all certificates are issued by ACME. */
  files: { certificateFile: string; keyFile: string } | undefined;
  /** undefined: only the certificate in the files is used. */
  acme: { directoryUrl: string; email: string | null } | undefined;
}

export interface ServerSettings {
  host: string;
  port: number;
  /** undefined: the server itself speaks plain HTTP only. */
  https: HttpsServerSettings | undefined;
  /** Absolute. */
  dataDir: string;
  /** Free space below which nothing takes up more of the disk that can do without; undefined: by the size of the disk. */
  diskReserveBytes: number | undefined;
  /** undefined: the embedded PostgreSQL. */
  databaseUrl: string | undefined;
  smtpServer: SmtpServer | undefined;
  allowPrivateFetch: boolean;
  /** All visitors come through the operator's own proxy. */
  trustProxy: boolean;
  connectionLimits: Partial<ConnectionLimits>;
  /** Host names of the API. Links contain the first. */
  apiHosts: string[];
  serviceDomain: string;
  publicScheme: string;
  /** undefined: the port that the server listens on, for HTTPS if it does. */
  publicPort: number | undefined;
  /** undefined: relays run elsewhere. */
  relay: LocalRelaySettings | undefined;
  traceRequests: TraceMode;
  /** Where metrics are served; undefined: nowhere. */
  metrics: { host: string; port: number } | undefined;
  /** The secrets set in the environment; the others are in the data directory. */
  secrets: Partial<Record<SecretName, string>>;
  /** Variables of the Worker, by name. */
  worker: Record<string, string>;
}

/** @throws StartError that names each variable with an invalid value. */
export function readSettings(environment: NodeJS.ProcessEnv): ServerSettings {
  const provided = Object.fromEntries(
    Object.entries({
      ...SELF_HOSTED_DEFAULTS,
      ...withPublicScheme(readGivenValues(environment)),
    }).filter(([name]) => name in AllSettings.shape || name === "HOSTED"),
  );
  if (provided.HOSTED === "true") {
    throw new StartError("HOSTED: must not be set on a self-hosted server, only on Cloudflare");
  }
  const result = AllSettings.superRefine(checkSettingGroups)
    .superRefine(checkHttps)
    .safeParse(provided);
  if (!result.success) {
    throw new StartError(
      result.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "),
    );
  }
  const { data } = result;
  const worker: Record<string, string> = {};
  for (const [name, value] of Object.entries(provided)) {
    if (!(name in ServerOnlySettings.shape) && name !== "HOSTED" && !isSecret(name))
      worker[name] = value;
  }
  const https = toHttps(data);
  const apiHosts = parseApiHosts(data.SERVICE_DOMAIN, data.API_HOSTS);
  return {
    host: data.HOST,
    port: data.PORT,
    https,
    dataDir: resolve(data.DATA_DIR),
    diskReserveBytes:
      data.DISK_RESERVE_MB === undefined ? undefined : data.DISK_RESERVE_MB * MEGABYTE,
    databaseUrl: data.DATABASE_URL,
    smtpServer: data.SMTP_URL,
    allowPrivateFetch: data.ALLOW_PRIVATE_FETCH === "true",
    trustProxy: data.TRUST_PROXY,
    connectionLimits: {
      total: data.MAX_CONNECTIONS,
      perSource: data.MAX_CONNECTIONS_PER_ADDRESS,
    },
    apiHosts,
    serviceDomain: data.SERVICE_DOMAIN,
    publicScheme: data.PUBLIC_SCHEME,
    publicPort: data.PUBLIC_PORT,
    relay:
      data.LOCAL_RELAY === "off"
        ? undefined
        : {
            host: data.RELAY_HOST ?? stripBrackets((https && apiHosts[0]) ?? "127.0.0.1"),
            ports: data.RELAY_PORT_RANGE,
            bind: data.RELAY_BIND ?? data.HOST,
            url: data.RELAY_URL,
          },
    traceRequests: data.TRACE_REQUESTS,
    metrics:
      data.METRICS_PORT === undefined
        ? undefined
        : { host: data.METRICS_HOST, port: data.METRICS_PORT },
    secrets: Object.fromEntries(
      SECRET_NAMES.filter((name) => name in provided).map((name) => [name, provided[name]]),
    ),
    worker: { ...worker, ALLOW_PRIVATE_FETCH: data.ALLOW_PRIVATE_FETCH },
  };
}

/** With HTTPS of the server's own, public URLs begin with https unless the operator says otherwise. */
function withPublicScheme(given: Record<string, string>): Record<string, string> {
  return given.HTTPS_PORT === undefined ? given : { PUBLIC_SCHEME: "https", ...given };
}

const CERTIFICATE_FILES = ["HTTPS_CERTIFICATE_FILE", "HTTPS_KEY_FILE"] as const;
const HTTPS_SETTINGS = [
  ...CERTIFICATE_FILES,
  "HTTPS_HOST",
  "HTTP_REDIRECT_PORT",
  "ACME_EMAIL",
] as const;

type Values = z.output<typeof AllSettings>;

function checkHttps(settings: Values, context: z.RefinementCtx): void {
  const refuse = (name: keyof Values, message: string) =>
    context.addIssue({ code: "custom", path: [name], message });
  const { HTTPS_PORT: port, HTTP_REDIRECT_PORT: redirectPort, ACME: acme } = settings;
  const hasAcme = acme === "on";
  const isSet = (name: keyof Values) => settings[name] !== undefined;
  if (port === undefined) {
    for (const name of HTTPS_SETTINGS.filter(isSet))
      refuse(name, "has no effect without HTTPS_PORT");
    if (hasAcme) refuse("ACME", "has no effect without HTTPS_PORT");
    return;
  }
  const files = CERTIFICATE_FILES.filter(isSet);
  if (files.length === 0 && !hasAcme)
    refuse("HTTPS_PORT", "requires ACME=on, or HTTPS_CERTIFICATE_FILE and HTTPS_KEY_FILE");
  if (files.length === 1)
    refuse(files[0]!, "must be set together with the other one of the two files");
  if (hasAcme && redirectPort === undefined)
    refuse(
      "HTTP_REDIRECT_PORT",
      "must be set as well: the certificate authority verifies hosts on port 80",
    );
  if (settings.TRUST_PROXY)
    refuse("TRUST_PROXY", "must not be true with HTTPS_PORT: visitors could claim any address");
  if (redirectPort === port && port !== 0)
    refuse("HTTP_REDIRECT_PORT", "must differ from HTTPS_PORT");
  if (!sharesAddress(settings.HOST, settings.HTTPS_HOST)) return;
  for (const name of ["HTTPS_PORT", "HTTP_REDIRECT_PORT"] as const) {
    if (settings.PORT !== 0 && settings[name] === settings.PORT)
      refuse(name, "must differ from PORT");
  }
}

const ALL_ADDRESSES = [undefined, "0.0.0.0", "::"];

/** Whether a port at one of the hosts is also one at the other. */
function sharesAddress(host: string, httpsHost: string | undefined): boolean {
  return host === httpsHost || [host, httpsHost].some((one) => ALL_ADDRESSES.includes(one));
}

function toHttps(data: Values): HttpsServerSettings | undefined {
  const { HTTPS_CERTIFICATE_FILE: certificateFile, HTTPS_KEY_FILE: keyFile } = data;
  if (data.HTTPS_PORT === undefined) return undefined;
  const hasFiles = certificateFile !== undefined && keyFile !== undefined;
  return {
    host: data.HTTPS_HOST,
    port: data.HTTPS_PORT,
    redirectPort: data.HTTP_REDIRECT_PORT,
    files: hasFiles
      ? { certificateFile: resolve(certificateFile), keyFile: resolve(keyFile) }
      : undefined,
    acme:
      data.ACME === "on"
        ? { directoryUrl: data.ACME_DIRECTORY_URL, email: data.ACME_EMAIL ?? null }
        : undefined,
  };
}

/** Reads the environment, and variables that it does not set from these files in the working directory. */
export function readEnvironment(...files: string[]): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {};
  for (const file of files) {
    try {
      Object.assign(environment, parseEnv(readFileSync(file, "utf8")));
    } catch (error) {
      if (getErrorCode(error) === "ENOENT") continue;
      throw new StartError(`${file} can't be read: ${getErrorMessage(error)}`);
    }
  }
  return { ...environment, ...readGivenValues(process.env) };
}

function isSecret(name: string): boolean {
  return SECRET_NAMES.some((secret) => secret === name);
}
