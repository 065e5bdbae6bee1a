/** The settings of the front proxy, which `front-proxy.ts` passes to its process in the environment. */
import { z } from "zod";
import { TRACE_MODES } from "../../shared/tracing/request-trace.ts";
import { HttpsSettings } from "./https/settings.ts";

const count = z.coerce.number().int().min(1);
const Environment = z.object({
  FRONT_HOST: z.string(),
  FRONT_PORT: z.coerce.number().int(),
  /** JSON: null when there is only plain HTTP. */
  FRONT_HTTPS: z
    .string()
    .transform((text): unknown => JSON.parse(text))
    .pipe(HttpsSettings.nullable()),
  FRONT_TUNNEL_UPSTREAM: z.string(),
  FRONT_API_UPSTREAM: z.string(),
  /** Empty: no agent is passed on to a relay. */
  FRONT_RELAY_UPSTREAM: z.string(),
  FRONT_PROBE_UPSTREAM: z.string(),
  /** Separated by commas. */
  FRONT_API_HOSTS: z.string().transform((hosts) => new Set(hosts.split(","))),
  /** The path of the socket for requests of the server and of the Worker. */
  FRONT_CONTROL: z.string(),
  FRONT_TRACE: z.enum(TRACE_MODES),
  FRONT_CONNECTIONS: count,
  /** Empty: no limit, because all visitors come through the operator's own proxy. */
  FRONT_CONNECTIONS_PER_SOURCE: z.union([z.literal("").transform(() => Infinity), count]),
});

export type FrontProxySettings = ReturnType<typeof readSettings>;

export function readSettings(environment: NodeJS.ProcessEnv) {
  const variables = Environment.parse(environment);
  const relay = variables.FRONT_RELAY_UPSTREAM;
  const perSource = variables.FRONT_CONNECTIONS_PER_SOURCE;
  return {
    host: variables.FRONT_HOST,
    port: variables.FRONT_PORT,
    https: variables.FRONT_HTTPS,
    apiHosts: variables.FRONT_API_HOSTS,
    upstreamPaths: {
      tunnel: variables.FRONT_TUNNEL_UPSTREAM,
      api: variables.FRONT_API_UPSTREAM,
      ...(relay !== "" && { relay }),
    },
    probePath: variables.FRONT_PROBE_UPSTREAM,
    controlPath: variables.FRONT_CONTROL,
    traceRequests: variables.FRONT_TRACE,
    limits: { total: variables.FRONT_CONNECTIONS, perSource },
    /** Then a visitor's address says nothing about the visitor's source. */
    isBehindProxy: perSource === Infinity,
  };
}
