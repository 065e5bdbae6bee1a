/** GET /relays/connect: a relay opens its link. Then the connection belongs to the relay's object. */
import { RELAY_LINK_URL } from "../../../durable-objects/relay/link-attachment.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { RECONNECT_MAX_MS } from "../../../protocol/limits.ts";
import { RelayConnectQuery } from "../../../protocol/relay/link.ts";
import { callObject } from "../../call-object.ts";
import { isDraining } from "../../draining.ts";
import { ApiError } from "../../errors.ts";
import { relayObject } from "../../objects.ts";
import { unauthorized } from "../guard.ts";
import { createRouter, documentRoute, invalidInput, type ApiContext } from "../route.ts";
import { requireUpgrade } from "../upgrade.ts";
import { parseBearerSecret } from "../../../shared/bearer-token.ts";

export const relayLink = createRouter();

documentRoute(relayLink, {
  operationId: "connectRelay",
  method: "get",
  path: "/relays/connect",
  summary: "Connect a relay",
  description:
    "A WebSocket (docs/protocols/relay-protocol.md). The bearer is the secret that the operator has configured for the service and its relays.",
  guard: { security: ["relaySecret"], failures: ["unauthorized"] },
  query: RelayConnectQuery,
  responses: { 101: { description: "The WebSocket is open." } },
  failures: ["upgrade_expected", "provider_not_configured", "unavailable"],
});

relayLink.get("/relays/connect", async (c) => {
  requireRelaySecret(c);
  requireUpgrade(c, "Relays");
  const query = RelayConnectQuery.safeParse(c.req.query());
  if (!query.success) throw invalidInput(c, { target: "query", error: query.error });
  const headers = { Upgrade: "websocket" };
  const answer = isDraining()
    ? null
    : await callObject(relayObject(c.env, query.data.relay_id).fetch(RELAY_LINK_URL, { headers }));
  if (answer?.status === 101) return answer;
  const retryAfterSeconds = RECONNECT_MAX_MS / 1000;
  throw new ApiError("unavailable", "The server is restarting. Try again.", { retryAfterSeconds });
});

function requireRelaySecret(c: ApiContext): void {
  const { RELAY_SECRET: secret } = c.var.config;
  if (secret === undefined) {
    throw new ApiError(
      "provider_not_configured",
      "The server has no RELAY_SECRET, so no relay can connect.",
    );
  }
  const bearer = parseBearerSecret(c.req.header("authorization"));
  if (bearer === null || !equalInConstantTime(bearer, secret)) throw unauthorized();
}
