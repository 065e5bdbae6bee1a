/** The relay's settings, from the environment. */
import { z } from "zod";
import { Label } from "../protocol/schemas/scalars.ts";
import {
  RELAY_PORT_RANGE_DEFAULT,
  RELAY_SECRET_MIN_CHARS,
  RelayHost,
  RelayPortRange,
  RelayUrl,
} from "../protocol/relay/settings.ts";
import { describeIssue } from "../protocol/schemas/issue-messages.ts";
import { readGivenValues } from "../shared/environment.ts";
import { formatHostAndPort } from "../shared/hosts.ts";

z.config({ customError: describeIssue });

/** Those of a relay that an operator runs. */
const OperatorSettings = z.object({
  RELAY_ID: Label.default("main"),
  RELAY_API_URL: z.url({
    protocol: /^https?$/,
    error: "must be the URL of the API, such as https://underpass.example.com",
  }),
  RELAY_API_HOST: z
    .string()
    .regex(/^[A-Za-z0-9.:[\]-]+$/, "must be a host name")
    .optional(),
  RELAY_SECRET: z
    .string({ error: "must be the same secret as the API's RELAY_SECRET" })
    .min(RELAY_SECRET_MIN_CHARS, `must have at least ${RELAY_SECRET_MIN_CHARS} characters`),
  RELAY_HOST: RelayHost.default("127.0.0.1"),
  RELAY_PORT_RANGE: RelayPortRange.prefault(RELAY_PORT_RANGE_DEFAULT),
  HOST: RelayHost.default("127.0.0.1"),
  RELAY_BIND: RelayHost.optional(),
  RELAY_URL: RelayUrl.optional(),
});

export const RELAY_SETTING_NAMES = Object.keys(OperatorSettings.shape);

const Environment = OperatorSettings.extend({
  /** Set by `npm start`. */
  RELAY_AGENT_SOCKET: z.string().optional(),
});

export interface RelaySettings {
  id: string;
  /** Without a trailing slash. */
  apiUrl: string;
  /** The Host header for the API, when its URL has an IP address. */
  apiHost: string | undefined;
  /** Shared with the API: authenticates the relay, and keys of flow tags are derived from it. */
  secret: string;
  /** The host for remote peers and visitors. */
  host: string;
  /** The relay's own port, TCP and UDP. */
  agentPort: number;
  /** The ports for tunnels and networks. */
  firstPort: number;
  lastPort: number;
  bind: string;
  /** The URL that agents connect to. */
  url: string;
  /** The path of the socket to which the front proxy of a self-hosted server passes on agents; undefined: none does. */
  agentSocket: string | undefined;
}

export class SettingsError extends Error {
  override name = "SettingsError";
}

/** @throws SettingsError with one line that names each variable with a bad value. */
export function readSettings(environment: NodeJS.ProcessEnv): RelaySettings {
  const result = Environment.safeParse(readGivenValues(environment));
  if (!result.success) {
    throw new SettingsError(
      result.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "),
    );
  }
  const { data } = result;
  const { first, last } = data.RELAY_PORT_RANGE;
  return {
    id: data.RELAY_ID,
    apiUrl: data.RELAY_API_URL.replace(/\/+$/, ""),
    apiHost: data.RELAY_API_HOST,
    secret: data.RELAY_SECRET,
    host: data.RELAY_HOST,
    agentPort: first,
    firstPort: first + 1,
    lastPort: last,
    bind: data.RELAY_BIND ?? data.HOST,
    url: data.RELAY_URL ?? `ws://${formatHostAndPort(data.RELAY_HOST, first)}`,
    agentSocket: data.RELAY_AGENT_SOCKET,
  };
}
