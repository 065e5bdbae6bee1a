/**
 * The requests of `underpass doctor`: the state of the token that an agent presents, and a connection like an agent's, which
 * registers no tunnel and stores nothing. Its bytes are bounded for each connection, and its connections for each organization.
 */
import { answerClose, parseClose } from "../../../durable-objects/websockets.ts";
import { PROTOCOL_VERSION, SUBPROTOCOL } from "../../../protocol/wire/frames.ts";
import {
  DIAGNOSTIC_BYTES_MAX,
  DIAGNOSTIC_CONNECTION_MAX_MS,
  DIAGNOSTIC_MESSAGE_MAX_BYTES,
  DIAGNOSTIC_MESSAGES_MAX,
  DIAGNOSTIC_TEXT_MAX_CHARS,
  DiagnosticDownload,
  PresentedToken,
  type DiagnosticReceipt,
  type DiagnosticWelcome,
} from "../../../protocol/schemas/tunnels/diagnostics.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { parseBearerToken } from "../../../shared/bearer-token.ts";
import { toHex, toUuid } from "../../../shared/bytes.ts";
import type { TokenBucketConfig } from "../../../shared/bounds/token-bucket.ts";
import { parseJson } from "../../../shared/json.ts";
import { ApiError } from "../../errors.ts";
import { listConnectedRelays } from "../../store/networks/relays.ts";
import {
  findPresentedToken,
  type PresentedTokenState,
} from "../../store/tokens/presented-tokens.ts";
import { requireAgentUpgrade, tokenVerifiedByHandler } from "../guard.ts";
import { takeToken } from "../rate-limit.ts";
import { createRouter, documentRoute, jsonResponse, route, type ApiContext } from "../route.ts";
import { toToken } from "../tokens/tokens.ts";
import { getOfferedProtocols } from "../upgrade.ts";
import { verifyToken } from "./agent-token.ts";
import {
  ConnectionRefusedError,
  refuseSubprotocol,
  respondWithClose,
  toTokenRefusal,
} from "./refusals.ts";

/** Limits the diagnostic connections of one organization. */
const CONNECTION_RULE: TokenBucketConfig = { burst: 20, refillMs: 5_000 };

export const diagnostics = createRouter();

diagnostics.openapi(
  route({
    operationId: "getPresentedToken",
    method: "get",
    path: "/agent/token",
    summary: "Get the capability token that the request is sent with",
    description: "The bearer is a capability token of an agent, restricted or not.",
    guard: tokenVerifiedByHandler,
    responses: { 200: jsonResponse("The token, which is valid.", PresentedToken) },
  }),
  async (c) => {
    const state = await findToken(c).catch((error: unknown) => {
      if (!(error instanceof ConnectionRefusedError)) throw error;
      const { message } = error;
      throw new ApiError("unauthorized", `${message[0]?.toUpperCase()}${message.slice(1)}.`);
    });
    const { revoked: _, ...token } = toToken(state.row, state.spentUsdCents);
    const { organization, isApproved: approved, isOverBudget: overBudget } = state;
    const relays = await listConnectedRelays(c.var.db);
    return c.json({ ...token, organization, approved, overBudget, relays }, 200);
  },
);

documentRoute(diagnostics, {
  operationId: "connectForDiagnosis",
  method: "get",
  path: "/agent/diagnostics",
  summary: "Test an agent's connection",
  description:
    "A WebSocket that tests the way of an agent's connection and stores nothing (docs/protocols/agent-protocol.md). The bearer is a capability token in base64. Every refusal is sent as a Close.",
  guard: tokenVerifiedByHandler,
  responses: { 101: { description: "The WebSocket is open." } },
  failures: ["upgrade_expected"],
});

diagnostics.get("/agent/diagnostics", async (c) => {
  requireAgentUpgrade(c, "Agents");
  try {
    const offered = getOfferedProtocols(c);
    if (!offered.includes(SUBPROTOCOL)) throw refuseSubprotocol(offered, SUBPROTOCOL);
    const { organization } = await findToken(c);
    await limitConnections(c, organization.id);
    return openConnection();
  } catch (error) {
    if (error instanceof ConnectionRefusedError) return respondWithClose(c, error, SUBPROTOCOL);
    throw error;
  }
});

/** @throws ConnectionRefusedError unless the bearer is the valid capability token of an agent. */
async function findToken(c: ApiContext): Promise<PresentedTokenState> {
  const bearer = parseBearerToken(c.req.header("authorization"));
  if (bearer === null) throw new ConnectionRefusedError("unauthorized", "a token is required");
  const token = await verifyToken(c.var.config, bearer);
  const state = await findPresentedToken(c.var.db, {
    orgId: toUuid(token.organizationId),
    nonce: toHex(token.nonce),
  });
  switch (state) {
    case "token_unknown":
    case "token_revoked":
      throw toTokenRefusal(state);
    default:
      return state;
  }
}

async function limitConnections(c: ApiContext, orgId: string): Promise<void> {
  const key = `diagnostics of ${orgId}`;
  const waitMs = await takeToken(c.env, key, CONNECTION_RULE);
  if (waitMs === 0) return;
  throw new ConnectionRefusedError(
    "quota_exceeded",
    `too many diagnostic connections; try again in ${Math.ceil(waitMs / 1000)} seconds`,
  );
}

function openConnection(): Response {
  const { 0: client, 1: server } = new WebSocketPair();
  let sent = 0;
  let received = 0;
  let messages = 0;
  const timer = setTimeout(
    () => server.close(1000, "the diagnostic connection has reached its maximum duration"),
    DIAGNOSTIC_CONNECTION_MAX_MS,
  );
  const violate = (reason: string): void =>
    server.close(CLOSE.protocol_error, `protocol_error: ${reason}`);
  server.binaryType = "arraybuffer";
  server.addEventListener("close", ({ code, reason, wasClean }) => {
    clearTimeout(timer);
    answerClose(server, parseClose(code, reason, wasClean));
  });
  server.addEventListener("message", ({ data }) => {
    messages += 1;
    if (messages > DIAGNOSTIC_MESSAGES_MAX) return violate("too many messages");
    if (typeof data === "string") {
      const bytes = parseDownload(data);
      if (bytes === null) return violate("unreadable message");
      sent += bytes;
      if (sent > DIAGNOSTIC_BYTES_MAX) return violate("too many bytes");
      return server.send(new Uint8Array(bytes));
    }
    const { byteLength } = data as ArrayBuffer;
    received += byteLength;
    if (byteLength > DIAGNOSTIC_MESSAGE_MAX_BYTES || received > DIAGNOSTIC_BYTES_MAX) {
      return violate("too many bytes");
    }
    server.send(JSON.stringify({ received } satisfies DiagnosticReceipt));
  });
  server.accept();
  const welcome: DiagnosticWelcome = { protocol: PROTOCOL_VERSION, server: SERVICE_VERSION };
  server.send(JSON.stringify(welcome));
  const headers = { "Sec-WebSocket-Protocol": SUBPROTOCOL };
  return new Response(null, { status: 101, webSocket: client, headers });
}

/** @returns null when the message is not a `DiagnosticDownload`. */
function parseDownload(text: string): number | null {
  // Parsing a message of megabytes takes seconds, for which all others would wait.
  if (text.length > DIAGNOSTIC_TEXT_MAX_CHARS) return null;
  return DiagnosticDownload.safeParse(parseJson(text)).data?.bytes ?? null;
}
