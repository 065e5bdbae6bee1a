/** What the parts of the gateway share: how they answer over HTTP, and how they know who may ask. */

export interface Answer {
  status: number;
  /** JSON. */
  body: string;
  headers?: Record<string, string>;
}

export function errorAnswer(status: number, message: string): Answer {
  return { status, body: JSON.stringify({ message }) };
}

/** In a time that says nothing about the secret. */
export type CheckSecret = (candidate: string) => boolean;
