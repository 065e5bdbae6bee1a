/**
 * GET /agent/streams: a client of `underpass connect` reaches a TCP tunnel without its public port. The database
 * decides (`client-admission.ts`); then the connection belongs to the tunnel's object.
 */
import { waitUntil } from "cloudflare:workers";
import { CLIENT_CONNECT_URL, CLIENT_HEADER } from "../../../durable-objects/tunnel/admission.ts";
import { STREAMS_SUBPROTOCOL } from "../../../protocol/wire/frames.ts";
import { ClientConnectQuery } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { failAfter } from "../../database-outage.ts";
import { describeError } from "../../errors.ts";
import type { AdmittedClient } from "../../internal-api-binding.ts";
import { LimitedLog } from "../../../shared/log.ts";
import { ADMISSION_MAX_MS } from "../../limits.ts";
import { tunnelObject } from "../../objects.ts";
import { createRouter, documentRoute, type ApiContext } from "../route.ts";
import {
  ConnectionRefusedError,
  fromRefusal,
  refuseSubprotocol,
  respondWithClose,
  toConnectionRefusal,
  toFailureRefusal,
} from "./refusals.ts";
import { getOfferedProtocols } from "../upgrade.ts";
import { requireAgentUpgrade, tokenVerifiedByHandler } from "../guard.ts";
import { parseBearerToken } from "../../../shared/bearer-token.ts";

export const clientStreams = createRouter();

documentRoute(clientStreams, {
  operationId: "connectClient",
  method: "get",
  path: "/agent/streams",
  summary: "Connect a client to a TCP tunnel",
  description:
    "A WebSocket that carries one TCP connection (docs/protocols/agent-protocol.md). The bearer is a capability token in base64. Every refusal is sent as a Close.",
  guard: tokenVerifiedByHandler,
  query: ClientConnectQuery,
  responses: { 101: { description: "The WebSocket is open." } },
  failures: ["upgrade_expected"],
});

/** While the database is down, every agent and client tries again every few seconds. */
const failures = new LimitedLog("error", "client_failed");

clientStreams.get("/agent/streams", async (c) => {
  requireAgentUpgrade(c, "Clients");
  try {
    return await handOver(c, await admit(c));
  } catch (error) {
    if (error instanceof ConnectionRefusedError)
      return respondWithClose(c, error, STREAMS_SUBPROTOCOL);
    failures.record({ requestId: c.var.requestId, cause: describeError(error) }, Date.now());
    return respondWithClose(c, toFailureRefusal(error), STREAMS_SUBPROTOCOL);
  }
});

async function admit(c: ApiContext): Promise<AdmittedClient> {
  const offered = getOfferedProtocols(c);
  if (!offered.includes(STREAMS_SUBPROTOCOL)) {
    throw refuseSubprotocol(offered, STREAMS_SUBPROTOCOL);
  }
  const bearer = parseBearerToken(c.req.header("authorization"));
  if (bearer === null) throw new ConnectionRefusedError("unauthorized", "a token is required");
  const query = ClientConnectQuery.safeParse(c.req.query());
  if (!query.success)
    throw new ConnectionRefusedError("invalid_request", "tunnel: must be an id or a subdomain");
  const { tunnel } = query.data;
  const request = { bearer, tunnel, address: c.var.address };
  const verdict = await failAfter(ADMISSION_MAX_MS, async () =>
    c.env.INTERNAL_API.admitClient(request),
  );
  if ("refusal" in verdict) throw fromRefusal(verdict);
  return verdict;
}

async function handOver(c: ApiContext, admitted: AdmittedClient): Promise<Response> {
  const { admission } = admitted;
  const response = await tunnelObject(c.env, admission.tunnelId).fetch(CLIENT_CONNECT_URL, {
    headers: {
      Upgrade: "websocket",
      "Sec-WebSocket-Protocol": STREAMS_SUBPROTOCOL,
      [CLIENT_HEADER]: JSON.stringify(admission),
    },
  });
  if (response.status !== 101) throw toConnectionRefusal(response);
  waitUntil(c.env.INTERNAL_API.recheckClient(admitted));
  return response;
}
