/** Refusals of agents and of clients of `connect`, which are sent as the code of a WebSocket Close. */
import { getDiskShortage } from "../../../durable-objects/low-disk.ts";
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  formatCloseReason,
  type CloseRefusal,
  type CloseSubcode,
} from "../../../protocol/wire/close-reason.ts";
import { explainSubprotocolMismatch } from "../../../protocol/wire/version-mismatch.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import { isDatabaseUnavailable } from "../../database-outage.ts";
import type { PortOutsideRanges } from "../../store/networks/relay-ports.ts";
import type { TokenRefusal } from "../../store/tokens/token-refusal.ts";
import type { ApiContext } from "../route.ts";
import { getOfferedProtocols } from "../upgrade.ts";

/** Ends the attempt with a Close, whose reason is the code's name, the message and the subcode. */
export class ConnectionRefusedError extends Error {
  override name = "ConnectionRefusedError";
  readonly closeName: CloseName;
  readonly subcode: CloseSubcode | undefined;

  constructor(closeName: CloseName, message: string, subcode?: CloseSubcode) {
    super(message);
    this.closeName = closeName;
    this.subcode = subcode;
  }
}

/** The error, as `InternalApi` returns it. */
export function toRefusal({ closeName, message, subcode }: ConnectionRefusedError): CloseRefusal {
  return { refusal: closeName, message, subcode };
}

export function fromRefusal({ refusal, message, subcode }: CloseRefusal): ConnectionRefusedError {
  return new ConnectionRefusedError(refusal, message, subcode);
}

/** @param accepted the only subprotocol that the server accepts of this client. */
export function refuseSubprotocol(
  offered: readonly string[],
  accepted: string,
): ConnectionRefusedError {
  const { message, subcode } = explainSubprotocolMismatch(offered, accepted);
  return new ConnectionRefusedError("unsupported_version", message, subcode);
}

/** For an error that no refusal describes: the client tries again. */
export function toFailureRefusal(error: unknown): ConnectionRefusedError {
  if (getDiskShortage(Date.now()) === "full")
    return new ConnectionRefusedError("going_away", "the server's disk is full");
  if (isDatabaseUnavailable(error))
    return new ConnectionRefusedError("going_away", "the server's database does not answer");
  return new ConnectionRefusedError("internal", "the server failed to process this connection");
}

/** For a genuine token that may not be used now. */
export function toTokenRefusal(refusal: TokenRefusal): ConnectionRefusedError {
  switch (refusal) {
    case "token_unknown":
      return new ConnectionRefusedError("unauthorized", "the token is unknown");
    case "token_revoked":
      return new ConnectionRefusedError("unauthorized", "the token was revoked");
    case "organization_pending":
      return organizationNotApproved("the organization is waiting for approval");
    case "organization_rejected":
      return organizationNotApproved("the organization was not approved");
    case "over_budget":
      return new ConnectionRefusedError(
        "BUDGET_EXCEEDED",
        "this month's budget of the token, its master key or its organization is used up",
      );
  }
}

function organizationNotApproved(message: string): ConnectionRefusedError {
  return new ConnectionRefusedError("forbidden", message, "organization_not_approved");
}

/** `is not in the port range of the relay: 40001 to 40100` */
export function describeOutsideRanges({ ranges }: PortOutsideRanges): string {
  const texts = new Set(ranges.map(({ firstPort, lastPort }) => `${firstPort} to ${lastPort}`));
  const noun = texts.size === 1 ? "port range of the relay" : "port ranges of the relays";
  return `is not in the ${noun}: ${[...texts].join(", ")}`;
}

/** @param response of a tunnel's object that did not accept the socket. */
export function toConnectionRefusal({ headers, status }: Response): ConnectionRefusedError | Error {
  switch (headers.get(ERROR_HEADER)) {
    case "unavailable":
      return new ConnectionRefusedError("going_away", "the server is restarting");
    case "conflict":
      return new ConnectionRefusedError("tunnel_stopped", "the tunnel was stopped");
    case "tunnel_not_found":
      return new ConnectionRefusedError("tunnel_deleted", "the tunnel was deleted");
    case "forbidden":
      return new ConnectionRefusedError(
        "forbidden",
        "your address is not on the tunnel's IP allowlist",
        "address_not_allowed",
      );
    case "rate_limited":
      return new ConnectionRefusedError(
        "quota_exceeded",
        "the tunnel has too many connected clients",
      );
    default:
      return new Error(`the tunnel's object answered ${status}`);
  }
}

/**
 * Accepts the WebSocket in order to send the Close on it.
 *
 * @param accepted the subprotocol that the server accepts of this client.
 */
export function respondWithClose(
  c: ApiContext,
  { closeName, message, subcode }: ConnectionRefusedError,
  accepted: string,
): Response {
  c.set("refusal", closeName);
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.close(CLOSE[closeName], formatCloseReason(closeName, message, subcode));
  // A client that offers another subprotocol reads the Close only if the response names one that it offered.
  const offered = getOfferedProtocols(c);
  const granted = offered.includes(accepted) ? accepted : offered[0];
  const headers = granted === undefined ? undefined : { "Sec-WebSocket-Protocol": granted };
  return new Response(null, { status: 101, webSocket: client, headers });
}
