/** The end of a connection or a server, as a promise. */
import type { EventEmitter } from "node:events";

/**
 * Resolves at the next "close" event. Never rejects, unlike `once` of `node:events`, which rejects at an earlier "error"
 * event: a remote peer can cause one, and "close" follows it.
 */
export function waitForClose(emitter: EventEmitter): Promise<void> {
  return new Promise((resolve) => emitter.once("close", () => resolve()));
}
