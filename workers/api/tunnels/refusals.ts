/** Refusals of agents and their clients: told on their own transport, as the code of a Close. */
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import { CLOSE_REASON_MAX_BYTES } from "../../../protocol/limits.ts";
import { utf8 } from "../../../shared/encoding.ts";
import type { ApiContext } from "../route.ts";
import { offeredProtocols } from "../upgrade.ts";

/** Ends the attempt with a Close. `words` follow the code's name, for a person. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly closeName: CloseName;

  constructor(closeName: CloseName, words: string) {
    super(words);
    this.closeName = closeName;
  }
}

/** What a tunnel's object answers instead of taking a socket. */
export function refusalOfObject({ headers, status }: Response): Refusal | Error {
  switch (headers.get(ERROR_HEADER)) {
    case "unavailable":
      return new Refusal("going_away", "the server restarts");
    case "conflict":
      return new Refusal("tunnel_stopped", "the tunnel was stopped");
    case "tunnel_not_found":
      return new Refusal("tunnel_deleted", "the tunnel was deleted");
    case "forbidden":
      return new Refusal("forbidden", "the tunnel's IP allowlist does not have your address");
    case "rate_limited":
      return new Refusal("quota_exceeded", "the tunnel has too many clients");
    default:
      return new Error(`the tunnel's object answered ${status}`);
  }
}

/**
 * The connection is made, so that the Close can be sent on it.
 *
 * @param spoken the subprotocol that would have been spoken on it.
 */
export function refusalResponse(
  c: ApiContext,
  { closeName, message }: Refusal,
  spoken: string,
): Response {
  c.set("refusal", closeName);
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.close(CLOSE[closeName], withinBytes(`${closeName}: ${message}`, CLOSE_REASON_MAX_BYTES));
  // An agent that speaks something else only reads the Close if its own protocol is granted to it.
  const offered = offeredProtocols(c);
  const granted = offered.includes(spoken) ? spoken : offered[0];
  const headers = granted === undefined ? undefined : { "Sec-WebSocket-Protocol": granted };
  return new Response(null, { status: 101, webSocket: client, headers });
}

function withinBytes(text: string, maxBytes: number): string {
  const bytes = utf8(text);
  if (bytes.byteLength <= maxBytes) return text;
  // A character that is cut in half decodes to U+FFFD, three bytes of its own: drop it.
  return new TextDecoder().decode(bytes.subarray(0, maxBytes)).replace(/\uFFFD+$/, "");
}
