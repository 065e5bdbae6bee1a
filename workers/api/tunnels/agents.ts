/**
 * GET /agent/connect: an agent connects with its capability token. The database decides (`agent-admission.ts`); then the
 * connection belongs to the tunnel's object. A refusal is sent as the code of a Close, which tells the agent
 * whether to reconnect.
 */
import { SUBPROTOCOL } from "../../../protocol/wire/frames.ts";
import { AGENT_GATES_HEADER } from "../../../protocol/schemas/tunnels/agent-gates.ts";
import { AgentConnectQuery } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { failAfter } from "../../database-outage.ts";
import { describeError } from "../../errors.ts";
import { ADMISSION_MAX_MS } from "../../limits.ts";
import { LimitedLog } from "../../../shared/log.ts";
import { createRouter, documentRoute, type ApiContext } from "../route.ts";
import { parseAgentGates } from "./agent-gates.ts";
import { handOver } from "./hand-over.ts";
import {
  ConnectionRefusedError,
  fromRefusal,
  refuseSubprotocol,
  respondWithClose,
  toFailureRefusal,
} from "./refusals.ts";
import { getOfferedProtocols } from "../upgrade.ts";
import { requireAgentUpgrade, tokenVerifiedByHandler } from "../guard.ts";
import { parseBearerToken } from "../../../shared/bearer-token.ts";

export const agents = createRouter();

documentRoute(agents, {
  operationId: "connectAgent",
  method: "get",
  path: "/agent/connect",
  summary: "Connect an agent",
  description:
    "A WebSocket (docs/protocols/agent-protocol.md). The bearer is a capability token in base64. Every refusal is sent as a Close.",
  guard: tokenVerifiedByHandler,
  query: AgentConnectQuery,
  responses: { 101: { description: "The WebSocket is open." } },
  failures: ["upgrade_expected"],
});

/** While the database is down, every agent and client tries again every few seconds. */
const failures = new LimitedLog("error", "agent_failed");

agents.get("/agent/connect", async (c) => {
  requireAgentUpgrade(c, "Agents");
  try {
    return await connectAgent(c);
  } catch (error) {
    if (error instanceof ConnectionRefusedError) return respondWithClose(c, error, SUBPROTOCOL);
    failures.record({ requestId: c.var.requestId, cause: describeError(error) }, Date.now());
    return respondWithClose(c, toFailureRefusal(error), SUBPROTOCOL);
  }
});

async function connectAgent(c: ApiContext): Promise<Response> {
  const offered = getOfferedProtocols(c);
  if (!offered.includes(SUBPROTOCOL)) {
    throw refuseSubprotocol(offered, SUBPROTOCOL);
  }
  const bearer = parseBearerToken(c.req.header("authorization"));
  if (bearer === null) throw new ConnectionRefusedError("unauthorized", "a token is required");
  const query = AgentConnectQuery.safeParse(c.req.query());
  if (!query.success) {
    const [issue] = query.error.issues;
    throw new ConnectionRefusedError(
      "invalid_request",
      `${issue?.path.join(".")}: ${issue?.message}`,
    );
  }
  const gates = parseAgentGates(c.req.header(AGENT_GATES_HEADER));
  const { address } = c.var;
  const request = { bearer, query: query.data, gates, address };
  const verdict = await failAfter(ADMISSION_MAX_MS, async () =>
    c.env.INTERNAL_API.admitAgent(request),
  );
  if ("refusal" in verdict) throw fromRefusal(verdict);
  return handOver(c, verdict.admission);
}
