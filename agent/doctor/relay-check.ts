/** Whether this machine reaches the relays that TCP tunnels and private networks need. It presents no ticket. */
import { RELAY_SUBPROTOCOL } from "../../protocol/relay/datagrams.ts";
import { CONTROL_PATH, toRelayUrl } from "../../protocol/relay/paths.ts";
import type { PresentedToken } from "../../protocol/schemas/tunnels/diagnostics.ts";
import { findCloseName } from "../../protocol/wire/close-codes.ts";
import { explainError } from "../error-message.ts";
import { openWebSocket } from "../websocket.ts";
import { ok, skipped, warning, type Outcome } from "./check.ts";
import type { Route } from "./route.ts";

type Relay = PresentedToken["relays"][number];

export async function checkRelays(
  { authorities }: Pick<Route, "authorities">,
  relays: readonly Relay[],
  signal: AbortSignal,
): Promise<Outcome> {
  if (relays.length === 0) return skipped("no relay is connected to the server");
  const urls = relays.map(({ url }) => url).join(", ");
  const tried = `opening a WebSocket to ${urls}`;
  const problems = await Promise.all(
    relays.map((relay) => findProblem(relay, { authorities }, signal)),
  );
  const unreachable = problems.filter((problem) => problem !== null);
  if (unreachable.length === 0) return ok(tried, "it opens, and the relay's message arrives");
  return warning(
    tried,
    `no TCP tunnel or private network works from here: ${unreachable.join("; ")}`,
    "HTTP tunnels need no relay. Ask the operator of the server whether RELAY_HOST or RELAY_URL is an address that agents reach, RELAY_BIND one that the relay listens on, and its ports are open.",
  );
}

/** @returns null when the relay refuses the connection for its missing ticket. */
function findProblem(
  { url }: Relay,
  { authorities }: Pick<Route, "authorities">,
  signal: AbortSignal,
): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { followRedirects: false, authorities };
    const socket = openWebSocket(toRelayUrl(url, CONTROL_PATH), RELAY_SUBPROTOCOL, "", options);
    const fail = (problem: string): void => resolve(`${url} can't be reached (${problem})`);
    socket.on("error", (error) => fail(explainError(error)));
    socket.on("close", (code) => {
      if (findCloseName(code) === null) fail("the connection was lost");
      else resolve(null);
    });
    signal.addEventListener("abort", () => {
      fail("no answer in time");
      socket.terminate();
    });
  });
}
