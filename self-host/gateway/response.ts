/** The HTTP responses of the gateway, and the type of the function that verifies its secret. */

export interface GatewayResponse {
  status: number;
  /** JSON. */
  body: string;
  headers?: Record<string, string>;
}

export function buildErrorResponse(status: number, message: string): GatewayResponse {
  return { status, body: JSON.stringify({ message }) };
}

/** Takes the same time for every candidate, so that the time reveals nothing about the secret. */
export type VerifySecret = (candidate: string) => boolean;
