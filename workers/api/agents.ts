/**
 * GET /agent/connect: an agent comes with its capability token and asks for a name. Rows decide
 * (`admission.ts`); from then on the connection belongs to the tunnel's object. A refusal is told on the
 * agent's own transport, as the code of a Close, because that is what says whether to come back.
 */
import { waitUntil } from "cloudflare:workers";
import {
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  type Admission,
} from "../../durable-objects/tunnel/admission.ts";
import { CLOSE, type CloseName } from "../../protocol/close-codes.ts";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import { SUBPROTOCOL } from "../../protocol/frames.ts";
import { CLOSE_REASON_MAX_BYTES } from "../../protocol/limits.ts";
import { ConnectQuery } from "../../protocol/resources/tunnels.ts";
import { describeError } from "../errors.ts";
import { utf8 } from "../identity/encoding.ts";
import { log } from "../log.ts";
import { tunnelObject } from "../objects.ts";
import { failures, newArea, type ApiContext } from "./context.ts";
import { offeredProtocols, requireUpgrade } from "./upgrade.ts";

export const agents = newArea();

agents.openAPIRegistry.registerPath({
  method: "get",
  path: "/agent/connect",
  summary: "An agent connects",
  description:
    "A WebSocket (docs/agent-protocol.md). The bearer is a capability token in base64; every refusal is a Close.",
  security: [{ bearer: [] }],
  request: { query: ConnectQuery },
  responses: { 101: { description: "The connection." }, ...failures("upgrade_expected") },
});

agents.get("/agent/connect", async (c) => {
  requireUpgrade(c, "Agents connect with a WebSocket.");
  try {
    return await connectAgent(c);
  } catch (error) {
    if (error instanceof Refusal) return refusalResponse(c, error);
    log("error", "agent_failed", { requestId: c.var.requestId, cause: describeError(error) });
    return refusalResponse(c, new Refusal("internal", "something went wrong on the server's side"));
  }
});

/** Ends the attempt with a Close. `words` follow the code's name, for a person. */
class Refusal extends Error {
  override name = "Refusal";
  readonly closeName: CloseName;

  constructor(closeName: CloseName, words: string) {
    super(words);
    this.closeName = closeName;
  }
}

async function connectAgent(c: ApiContext): Promise<Response> {
  if (!offeredProtocols(c).includes(SUBPROTOCOL)) {
    throw new Refusal("unsupported_version", `this server speaks ${SUBPROTOCOL}`);
  }
  const bearer = c.req.header("authorization")?.match(/^Bearer +(\S+)$/i)?.[1];
  if (bearer === undefined) throw new Refusal("unauthorized", "a token is required");
  const asked = ConnectQuery.safeParse(c.req.query());
  if (!asked.success) {
    const [issue] = asked.error.issues;
    throw new Refusal("invalid_request", `${issue?.path.join(".")}: ${issue?.message}`);
  }
  const { address } = c.var;
  const verdict = await c.env.ROWS.admit({ bearer, asked: asked.data, address });
  if ("refusal" in verdict) throw new Refusal(verdict.refusal, verdict.words);
  return handOver(c, verdict.admission);
}

async function handOver(c: ApiContext, admission: Admission): Promise<Response> {
  try {
    const response = await tunnelObject(c.env, admission.tunnelId).fetch(AGENT_CONNECT_URL, {
      headers: {
        Upgrade: "websocket",
        "Sec-WebSocket-Protocol": SUBPROTOCOL,
        [ADMISSION_HEADER]: JSON.stringify(admission),
      },
    });
    if (response.status !== 101) throw refusalOfObject(response);
    waitUntil(c.env.ROWS.confirmAdmission(admission));
    return response;
  } catch (error) {
    await c.env.ROWS.withdrawAdmission(admission);
    throw error;
  }
}

function refusalOfObject({ headers, status }: Response): Refusal | Error {
  switch (headers.get(ERROR_HEADER)) {
    case "unavailable":
      return new Refusal("going_away", "the server restarts");
    case "conflict":
      return new Refusal("tunnel_stopped", "the tunnel was stopped");
    case "tunnel_not_found":
      return new Refusal("tunnel_deleted", "the tunnel was deleted");
    default:
      return new Error(`the tunnel's object answered ${status}`);
  }
}

/** The connection is made, so that the Close can be sent on it. */
function refusalResponse(c: ApiContext, { closeName, message }: Refusal): Response {
  c.set("refusal", closeName);
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.close(CLOSE[closeName], withinBytes(`${closeName}: ${message}`, CLOSE_REASON_MAX_BYTES));
  // An agent that speaks something else only reads the Close if its own protocol is granted to it.
  const offered = offeredProtocols(c);
  const granted = offered.includes(SUBPROTOCOL) ? SUBPROTOCOL : offered[0];
  const headers = granted === undefined ? undefined : { "Sec-WebSocket-Protocol": granted };
  return new Response(null, { status: 101, webSocket: client, headers });
}

function withinBytes(text: string, maxBytes: number): string {
  const bytes = utf8(text);
  if (bytes.byteLength <= maxBytes) return text;
  // A character that is cut in half decodes to U+FFFD, three bytes of its own: drop it.
  return new TextDecoder().decode(bytes.subarray(0, maxBytes)).replace(/\uFFFD+$/, "");
}
