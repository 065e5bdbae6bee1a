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

/** An error of PostgreSQL itself, which the driver throws as a NeonDbError with this SQLSTATE. */
export function buildFatalErrorResponse(code: string, message: string): GatewayResponse {
  return { status: 400, body: JSON.stringify({ message, severity: "FATAL", code }) };
}
