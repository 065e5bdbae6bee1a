/**
 * Between the front proxy of a self-hosted server and a tunnel's object: how much of a WebSocket its visitor has read.
 *
 * The front proxy sends a key with the request (`connection-key.ts`). An object that uses it adds a header to its 101 response,
 * and from then on receives text messages: the key, the number of payload bytes and the number of messages that were written to the
 * visitor, separated by colons. The visitor can't forge them, because it never learns the key.
 */

/** In the 101 response of an object; removed before the visitor gets it. */
export const ACKNOWLEDGED_HEADER = "underpass-acknowledged";
/** The visitor has read at least as much when an acknowledgement is sent: less than an object lets a visitor leave unread. */
export const ACKNOWLEDGEMENT_MIN_BYTES = 8 * 1024;
/** The same for the number of messages, however small they are. */
export const ACKNOWLEDGEMENT_MIN_MESSAGES = 64;

/** How much the visitor has read since the previous acknowledgement. */
export interface Acknowledgement {
  /** Payload. */
  bytes: number;
  messages: number;
}

export function formatAcknowledgement(key: string, { bytes, messages }: Acknowledgement): string {
  return `${key}:${bytes}:${messages}`;
}

/** @returns what is acknowledged; null when the text is a visitor's message. */
export function parseAcknowledgement(key: string, text: string): Acknowledgement | null {
  if (!text.startsWith(key) || text[key.length] !== ":") return null;
  const [bytes, messages] = text.slice(key.length + 1).split(":");
  return { bytes: Number(bytes), messages: Number(messages) };
}
