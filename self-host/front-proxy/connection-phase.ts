/** Where a visitor's connection is in the exchange of requests and responses. */
import type { RequestBody } from "./http1/request-body.ts";

/** What the next byte from the visitor belongs to. */
export type Phase =
  | { kind: "head" }
  /** The head is complete and waits for its turn. What follows it waits too. */
  | { kind: "queued" }
  | { kind: "body"; body: RequestBody }
  /** The request has its response, and the rest of its body is dropped. Another request may follow it. */
  | { kind: "body"; body: RequestBody; untilMs: number }
  /** The request is complete. What follows it waits until its response has ended, or the server accepts another protocol. */
  | { kind: "response" }
  /** The request is complete, and no other follows it. What the visitor still sends is dropped. */
  | { kind: "last" }
  /** The connection belongs to another protocol, such as WebSocket. */
  | { kind: "upgraded" }
  /** The connection was joined with one to the relay, which has its own limits for it. */
  | { kind: "joined" }
  /** The answer is sent, and what the visitor still sends is dropped. */
  | { kind: "lingering"; untilMs: number }
  | { kind: "closed" };

export const HEAD: Phase = { kind: "head" };
export const QUEUED: Phase = { kind: "queued" };
export const LAST: Phase = { kind: "last" };
export const RESPONSE: Phase = { kind: "response" };
export const UPGRADED: Phase = { kind: "upgraded" };
export const CLOSED: Phase = { kind: "closed" };
