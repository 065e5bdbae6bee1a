/** The WebSocket that the server has accepted: that of a visitor, or of an agent or another program. */
import { ACKNOWLEDGED_HEADER } from "../../../protocol/front-proxy/acknowledgements.ts";
import type { OpenWebSocket } from "./open-web-socket.ts";
import { ProgramWebSocket } from "./program-web-socket.ts";
import { VisitorWebSocket, type VisitorWebSocketOptions } from "./visitor-web-socket.ts";

const ACKNOWLEDGED_FIELD = new RegExp(`\\r\\n${ACKNOWLEDGED_HEADER}:[^\\r]*`, "i");

/** @param head of the response. @returns the head without the field that tells the two kinds apart, and the kind. */
export function readAcceptance(head: string): { kind: OpenWebSocket["kind"]; shownHead: string } {
  const kind = ACKNOWLEDGED_FIELD.test(head) ? "visitor" : "program";
  return { kind, shownHead: head.replace(ACKNOWLEDGED_FIELD, "") };
}

export function createWebSocket(
  kind: OpenWebSocket["kind"],
  options: VisitorWebSocketOptions,
): OpenWebSocket {
  return kind === "visitor" ? new VisitorWebSocket(options) : new ProgramWebSocket(options);
}
