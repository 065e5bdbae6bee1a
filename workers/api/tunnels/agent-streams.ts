/**
 * GET /agent/streams: a client of `underpass connect` reaches a TCP tunnel without its public port. Rows decide
 * (`stream-admission.ts`); from then on the connection belongs to the tunnel's object.
 */
import {
  AGENT_STREAMS_URL,
  CLIENT_HEADER,
  type ClientAdmission,
} from "../../../durable-objects/tunnel/agents/admission.ts";
import { STREAMS_SUBPROTOCOL } from "../../../protocol/wire/frames.ts";
import { StreamsQuery } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { describeError } from "../../errors.ts";
import { log } from "../../../shared/log.ts";
import { tunnelObject } from "../../objects.ts";
import { failures, newArea, type ApiContext } from "../route.ts";
import { Refusal, refusalOfObject, refusalResponse } from "./refusals.ts";
import { offeredProtocols, requireUpgrade } from "../upgrade.ts";

export const agentStreams = newArea();

agentStreams.openAPIRegistry.registerPath({
  method: "get",
  path: "/agent/streams",
  summary: "A client connects to a TCP tunnel",
  description:
    "A WebSocket that carries one TCP connection (docs/agent-protocol.md). The bearer is a capability token in base64; every refusal is a Close.",
  security: [{ bearer: [] }],
  request: { query: StreamsQuery },
  responses: { 101: { description: "The connection." }, ...failures("upgrade_expected") },
});

agentStreams.get("/agent/streams", async (c) => {
  requireUpgrade(c, "Clients connect with a WebSocket.");
  try {
    return await handOver(c, await admit(c));
  } catch (error) {
    if (error instanceof Refusal) return refusalResponse(c, error, STREAMS_SUBPROTOCOL);
    log("error", "client_failed", { requestId: c.var.requestId, cause: describeError(error) });
    const refusal = new Refusal("internal", "something went wrong on the server's side");
    return refusalResponse(c, refusal, STREAMS_SUBPROTOCOL);
  }
});

async function admit(c: ApiContext): Promise<ClientAdmission> {
  if (!offeredProtocols(c).includes(STREAMS_SUBPROTOCOL)) {
    throw new Refusal("unsupported_version", `this server speaks ${STREAMS_SUBPROTOCOL}`);
  }
  const bearer = c.req.header("authorization")?.match(/^Bearer +(\S+)$/i)?.[1];
  if (bearer === undefined) throw new Refusal("unauthorized", "a token is required");
  const query = StreamsQuery.safeParse(c.req.query());
  if (!query.success) throw new Refusal("invalid_request", "tunnel: must be an id or a name");
  const { tunnel } = query.data;
  const verdict = await c.env.ROWS.admitClient({ bearer, tunnel, address: c.var.address });
  if ("refusal" in verdict) throw new Refusal(verdict.refusal, verdict.words);
  return verdict.admission;
}

async function handOver(c: ApiContext, admission: ClientAdmission): Promise<Response> {
  const response = await tunnelObject(c.env, admission.tunnelId).fetch(AGENT_STREAMS_URL, {
    headers: {
      Upgrade: "websocket",
      "Sec-WebSocket-Protocol": STREAMS_SUBPROTOCOL,
      [CLIENT_HEADER]: JSON.stringify(admission),
    },
  });
  if (response.status !== 101) throw refusalOfObject(response);
  return response;
}
