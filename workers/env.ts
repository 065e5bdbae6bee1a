/** The Worker's bindings: from wrangler.toml when hosted, from self-host/workerd/ on one machine. */
import type { RateLimiter } from "../durable-objects/rate-limiter.ts";
import type { ObjectBindings } from "../durable-objects/bindings.ts";
import type { Directory } from "../durable-objects/directory.ts";
import type { Receiver } from "../durable-objects/receiver.ts";
import type { Organization } from "../durable-objects/organization.ts";
import type { Relay } from "../durable-objects/relay.ts";
import type { Tunnel } from "../durable-objects/tunnel.ts";
import type { InternalApiBinding } from "./internal-api-binding.ts";

/** Objects use narrower types of these. */
type NarrowedForObjects = "INTERNAL_API" | "TUNNEL" | "ORGANIZATION" | "RELAY";

export interface Env extends Omit<ObjectBindings, NarrowedForObjects> {
  /** The Worker's `Api` entry point. */
  API: Fetcher;
  /** The files of the dashboard. */
  ASSETS: Fetcher;
  INTERNAL_API: Service<InternalApiBinding>;
  TUNNEL: DurableObjectNamespace<Tunnel>;
  ORGANIZATION: DurableObjectNamespace<Organization>;
  RELAY: DurableObjectNamespace<Relay>;
  DIRECTORY: DurableObjectNamespace<Directory>;
  RATE_LIMITER: DurableObjectNamespace<RateLimiter>;
  RECEIVER: DurableObjectNamespace<Receiver>;

  DATABASE_URL: string;
  /** Self-hosted: the gateways to PostgreSQL, which speaks Neon's protocol, and to the mail server. */
  DATABASE_GATEWAY?: Fetcher;
  MAIL_GATEWAY?: Fetcher;
  /** Self-hosted: the front proxy, which all visitors are connected to. */
  FRONT_PROXY?: Fetcher;
  /** Self-hosted: a network that also reaches private addresses, for services that the operator configures. */
  OPERATOR_NETWORK?: Fetcher;
  /** In development both gateways are reached by URL instead: `wrangler dev` can't bind an external service. */
  GATEWAY_URL?: string;
  /** Authenticates the Worker to both gateways. */
  GATEWAY_SECRET?: string;

  /** Self-hosted: how many objects hold the directory. */
  DIRECTORY_SHARDS?: string;

  /** The edge reads these two directly. `getConfig` parses all settings for the API; each is a string. */
  SERVICE_DOMAIN?: string;
  API_HOSTS?: string;
  [setting: string]: unknown;
}
