/** The WebSocket that the server has accepted: that of a visitor, or of an agent or another program. */
import { ACKNOWLEDGED_HEADER } from "../../../protocol/front-proxy/acknowledgements.ts";
import { reset } from "../../../sockets/splice.ts";
import type { Visitor } from "../visitor-connection-options.ts";
import type { OpenWebSocket, WebSocketLimits, WebSocketOptions } from "./open-web-socket.ts";
import { ProgramWebSocket } from "./program-web-socket.ts";
import { VisitorWebSocket } from "./visitor-web-socket.ts";

const ACKNOWLEDGED_FIELD = new RegExp(`\\r\\n${ACKNOWLEDGED_HEADER}:[^\\r]*`, "i");

interface AcceptedWebSocketOptions extends Pick<WebSocketOptions, "writeToServer" | "end"> {
  visitor: Visitor;
  /** Random: acknowledges what the visitor has read. */
  acknowledgementKey: string;
  createLimits: (kind: OpenWebSocket["kind"]) => WebSocketLimits;
}

/** Sends the visitor the response, without the field that tells the two kinds apart. @param head of the response. */
export function acceptWebSocket(
  head: string,
  { visitor, createLimits, ...options }: AcceptedWebSocketOptions,
): OpenWebSocket {
  const isVisitor = ACKNOWLEDGED_FIELD.test(head);
  const ends = {
    ...options,
    ...createLimits(isVisitor ? "visitor" : "program"),
    hasUnsentBytes: () => visitor.writableLength > 0,
    writeToVisitor: (data: Uint8Array, onWritten?: () => void) =>
      void visitor.write(data, onWritten),
    reset: () => reset(visitor),
  };
  visitor.write(head.replace(ACKNOWLEDGED_FIELD, ""), "latin1");
  return isVisitor ? new VisitorWebSocket(ends) : new ProgramWebSocket(ends);
}
