/** What the parts of the gateway share: how they answer over HTTP, and how they know who may ask. */

export interface GatewayResponse {
  status: number;
  /** JSON. */
  body: string;
  headers?: Record<string, string>;
}

export function buildErrorResponse(status: number, message: string): GatewayResponse {
  return { status, body: JSON.stringify({ message }) };
}

/** In a time that says nothing about the secret. */
export type VerifySecret = (candidate: string) => boolean;
