/** The HTTP responses of the gateway. */

export interface GatewayResponse {
  status: number;
  /** JSON. */
  body: string;
  headers?: Record<string, string>;
}

export function buildErrorResponse(status: number, message: string): GatewayResponse {
  return { status, body: JSON.stringify({ message }) };
}
