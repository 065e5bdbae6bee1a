/**
 * What Cloudflare charges on the paid plan, beyond what the plan includes. In USD.
 *
 * Sources: developers.cloudflare.com/workers/platform/pricing and /durable-objects/platform/pricing, read in November 2026.
 */
export const USD = {
  /** A request of a visitor or an agent to the Worker. Calls from the Worker to objects are not requests of this kind. */
  workerRequest: 0.3 / 1e6,
  workerCpuMs: 0.02 / 1e6,
  /** Calls, alarms, and WebSocket messages to an object. */
  objectRequest: 0.15 / 1e6,
  objectGbSecond: 12.5 / 1e6,
  rowWritten: 1 / 1e6,
  storedGbMonth: 0.2,
} as const;

/** An object is charged for this much memory while it runs. */
export const OBJECT_GB = 0.128;
/** Incoming WebSocket messages that count as one request. */
export const MESSAGES_PER_REQUEST = 20;
/** What an object with an empty database stores (developers.cloudflare.com/durable-objects/reference/faq). */
export const EMPTY_OBJECT_GB = 12e-6;
