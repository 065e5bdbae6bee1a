/** Refusals of agents and their clients: told on their own transport, as the code of a Close. */
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import { CLOSE_REASON_MAX_BYTES } from "../../../protocol/limits.ts";
import { toUtf8 } from "../../../shared/bytes.ts";
import type { ApiContext } from "../route.ts";
import { getOfferedProtocols } from "../upgrade.ts";

/** Ends the attempt with a Close. `words` follow the code's name, for a person. */
export class ConnectionRefusal extends Error {
  override name = "Refusal";
  readonly closeName: CloseName;

  constructor(closeName: CloseName, words: string) {
    super(words);
    this.closeName = closeName;
  }
}

/** What a tunnel's object answers instead of taking a socket. */
export function toConnectionRefusal({ headers, status }: Response): ConnectionRefusal | Error {
  switch (headers.get(ERROR_HEADER)) {
    case "unavailable":
      return new ConnectionRefusal("going_away", "the server restarts");
    case "conflict":
      return new ConnectionRefusal("tunnel_stopped", "the tunnel was stopped");
    case "tunnel_not_found":
      return new ConnectionRefusal("tunnel_deleted", "the tunnel was deleted");
    case "forbidden":
      return new ConnectionRefusal(
        "forbidden",
        "the tunnel's IP allowlist does not have your address",
      );
    case "rate_limited":
      return new ConnectionRefusal("quota_exceeded", "the tunnel has too many clients");
    default:
      return new Error(`the tunnel's object answered ${status}`);
  }
}

/**
 * The connection is made, so that the Close can be sent on it.
 *
 * @param spoken the subprotocol that would have been spoken on it.
 */
export function respondWithClose(
  c: ApiContext,
  { closeName, message }: ConnectionRefusal,
  spoken: string,
): Response {
  c.set("refusal", closeName);
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.close(CLOSE[closeName], truncateUtf8(`${closeName}: ${message}`, CLOSE_REASON_MAX_BYTES));
  // An agent that speaks something else only reads the Close if its own protocol is granted to it.
  const offered = getOfferedProtocols(c);
  const granted = offered.includes(spoken) ? spoken : offered[0];
  const headers = granted === undefined ? undefined : { "Sec-WebSocket-Protocol": granted };
  return new Response(null, { status: 101, webSocket: client, headers });
}

function truncateUtf8(text: string, maxBytes: number): string {
  const bytes = toUtf8(text);
  if (bytes.byteLength <= maxBytes) return text;
  // A character that is cut in half decodes to U+FFFD, three bytes of its own: drop it.
  return new TextDecoder().decode(bytes.subarray(0, maxBytes)).replace(/\uFFFD+$/, "");
}
