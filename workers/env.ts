/** Everything that is bound to the Worker: wrangler.toml when hosted, self-host/workerd/workerd.ts on one machine. */
import type { RateLimiter } from "../durable-objects/rate-limiter.ts";
import type { ObjectBindings } from "../durable-objects/bindings.ts";
import type { Hostname } from "../durable-objects/hostname.ts";
import type { Receiver } from "../durable-objects/receiver.ts";
import type { Organization } from "../durable-objects/organization.ts";
import type { Relay } from "../durable-objects/relay.ts";
import type { Tunnel } from "../durable-objects/tunnel.ts";
import type { RowsBinding } from "./rows-binding.ts";

/** Objects see less of these. */
type NarrowedForObjects = "ROWS" | "TUNNEL" | "ORGANIZATION" | "RELAY";

export interface Env extends Omit<ObjectBindings, NarrowedForObjects> {
  ROWS: Service<RowsBinding>;
  TUNNEL: DurableObjectNamespace<Tunnel>;
  ORGANIZATION: DurableObjectNamespace<Organization>;
  RELAY: DurableObjectNamespace<Relay>;
  HOSTNAME: DurableObjectNamespace<Hostname>;
  RATE_LIMITER: DurableObjectNamespace<RateLimiter>;
  RECEIVER: DurableObjectNamespace<Receiver>;

  DATABASE_URL: string;
  /** Self-hosted: the Neon-protocol gateway in front of PostgreSQL, and the way to the mail spool. */
  DATABASE_GATEWAY?: Fetcher;
  MAIL_GATEWAY?: Fetcher;
  /** Self-hosted: reaches private addresses too, which what the operator configured may be on. */
  OPERATOR_NETWORK?: Fetcher;
  /** In development both gateways are reached by address instead: `wrangler dev` binds no outside service. */
  GATEWAY_URL?: string;
  /** Proves to both gateways that it is the Worker who asks. */
  GATEWAY_SECRET?: string;

  /** The edge reads these two itself; `configOf` parses all settings, which are text, for the API. */
  SERVICE_DOMAIN?: string;
  API_HOSTS?: string;
  [setting: string]: unknown;
}
