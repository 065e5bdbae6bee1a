/**
 * GET /agent/connect: an agent comes with its capability token and asks for a name. Rows decide here; from
 * then on the connection belongs to the tunnel's object. A refusal is told on the agent's own transport, as
 * the code of a Close, because that is what says whether to come back.
 */
import { waitUntil } from "cloudflare:workers";
import type { z } from "zod";
import {
  ADMISSION_HEADER,
  AGENT_CONNECT_URL,
  type Admission,
} from "../../durable-objects/tunnel/admission.ts";
import { CLOSE, type CloseName } from "../../protocol/close-codes.ts";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import { SUBPROTOCOL } from "../../protocol/frames.ts";
import { CLOSE_REASON_MAX_BYTES, RANDOM_NAME_MAX_TRIES } from "../../protocol/limits.ts";
import {
  DEFAULT_PROJECT_SLUG,
  isAllowedLabel,
  isReservedLabel,
  labelFault,
  labelOf,
  newRandomName,
} from "../../protocol/names.ts";
import { ConnectQuery } from "../../protocol/resources.ts";
import { publicUrl } from "../config.ts";
import { ApiError, describeError } from "../errors.ts";
import { verifyCapabilityToken, type TokenPayload } from "../identity/capability-token.ts";
import { fromBase64, toHex, utf8 } from "../identity/encoding.ts";
import { capabilityTokenKeys } from "../identity/keys.ts";
import { confirmTunnel } from "../live-tunnels.ts";
import { log } from "../log.ts";
import { tunnelObject } from "../objects.ts";
import {
  registerTunnel,
  type Registration,
  type RegistrationRefusal,
  type RegistrationRequest,
} from "../store/registrations.ts";
import { isTokenRevoked } from "../store/tokens.ts";
import { markDisconnected, type TunnelRow } from "../store/tunnels.ts";
import { failures, newArea, type ApiContext } from "./context.ts";

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
  if (c.req.header("upgrade")?.toLowerCase() !== "websocket") {
    throw new ApiError("upgrade_expected", "Agents connect with a WebSocket.", {
      headers: { Upgrade: "websocket" },
    });
  }
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
  const token = await readToken(c);
  const asked = ConnectQuery.safeParse(c.req.query());
  if (!asked.success) {
    const [issue] = asked.error.issues;
    throw new Refusal("invalid_request", `${issue?.path.join(".")}: ${issue?.message}`);
  }
  const tunnel = await register(c, token, asked.data);
  return handOver(c, token, tunnel);
}

function offeredProtocols(c: ApiContext): string[] {
  const offered = c.req.header("sec-websocket-protocol")?.split(",") ?? [];
  return offered.map((protocol) => protocol.trim()).filter((protocol) => protocol !== "");
}

const TOKEN_FAULTS = {
  malformed: "the token can't be read",
  bad_signature: "the token was not signed by this server",
  expired: "the token has expired",
} as const;

async function readToken(c: ApiContext): Promise<TokenPayload> {
  const bearer = c.req.header("authorization")?.match(/^Bearer +(\S+)$/i)?.[1];
  if (bearer === undefined) throw new Refusal("unauthorized", "a token is required");
  const bytes = fromBase64(bearer);
  if (!bytes) throw new Refusal("unauthorized", TOKEN_FAULTS.malformed);
  const keys = await capabilityTokenKeys(c.var.config);
  const verdict = await verifyCapabilityToken(bytes, keys, Date.now());
  if ("fault" in verdict) throw new Refusal("unauthorized", TOKEN_FAULTS[verdict.fault]);
  if (verdict.ok.kind !== "agent") {
    throw new Refusal("unauthorized", "the token is not an agent token");
  }
  return verdict.ok;
}

/** The tunnel's row, made or found. */
async function register(
  c: ApiContext,
  token: TokenPayload,
  asked: z.output<typeof ConnectQuery>,
): Promise<TunnelRow> {
  const projectSlug = asked.project ?? token.project ?? DEFAULT_PROJECT_SLUG;
  if (token.project !== null && token.project !== projectSlug) {
    throw new Refusal("forbidden", `the token is for the project ${token.project} only`);
  }
  for (let tries = 1; ; tries++) {
    const name = asked.subdomain ?? newRandomName();
    const label = labelOf(name, projectSlug);
    refuseLabel(token, label);
    const registration = await registerWithFreshNews(c, {
      orgId: uuidOf(token.organizationId),
      tokenNonce: toHex(token.nonce),
      ip: c.var.address,
      name,
      label,
      projectSlug,
      protocol: asked.protocol,
      localPort: asked.port,
      ttlSeconds: asked.ttl,
    });
    if ("ok" in registration) return registration.ok;
    const { refused } = registration;
    const mayTryAnother = asked.subdomain === undefined && tries < RANDOM_NAME_MAX_TRIES;
    if (refused !== "duplicate_name" || !mayTryAnother) throw refusalFor(refused, label);
  }
}

function refuseLabel(token: TokenPayload, label: string): void {
  const fault = labelFault(label);
  if (fault !== null) throw new Refusal("invalid_request", `the name ${fault}`);
  if (isReservedLabel(label)) throw new Refusal("duplicate_name", `${label} is reserved`);
  if (!isAllowedLabel(token.allowedSubdomains, label)) {
    const patterns = token.allowedSubdomains.join(", ");
    throw new Refusal("forbidden", `the token allows only ${patterns}`);
  }
}

/** A refusal by rows that may be out of date is believed once their tunnels were asked. */
async function registerWithFreshNews(
  c: ApiContext,
  request: RegistrationRequest,
): Promise<Registration> {
  const first = await registerTunnel(c.var.db, request);
  if ("ok" in first || first.doubted.length === 0) return first;
  await Promise.all(first.doubted.map((id) => confirmTunnel(c.env, c.var.db, id)));
  return registerTunnel(c.var.db, request);
}

function refusalFor(refusal: RegistrationRefusal, label: string): Refusal {
  switch (refusal) {
    case "token_unknown":
      return new Refusal("unauthorized", "the token is not known here");
    case "token_revoked":
      return new Refusal("unauthorized", "the token was revoked");
    case "organization_not_approved":
      return new Refusal("forbidden", "the organization waits for approval");
    case "project_not_found":
      return new Refusal("forbidden", "there is no such project");
    case "duplicate_name":
      return new Refusal("duplicate_name", `${label} is taken`);
    case "served_by_another":
      return new Refusal("duplicate_name", `${label} is being served with another token`);
    case "quota_exceeded":
      return new Refusal("quota_exceeded", "all tunnels of the token are in use");
  }
}

async function handOver(c: ApiContext, token: TokenPayload, tunnel: TunnelRow): Promise<Response> {
  const { config, db, address } = c.var;
  const { id, orgId, name, subdomain } = tunnel;
  const tokenNonce = toHex(token.nonce);
  const admission: Admission = {
    tunnelId: id,
    orgId,
    name,
    subdomain,
    url: publicUrl(config, `${subdomain}.${config.SERVICE_DOMAIN}`),
    tokenNonce,
    tokenExpiresAtMs: token.expiresAtSeconds * 1000,
    bandwidthLimitMbps: token.bandwidthLimitMbps,
    remoteIp: address,
  };
  const stub = tunnelObject(c.env, id);
  try {
    const response = await stub.fetch(AGENT_CONNECT_URL, {
      headers: {
        Upgrade: "websocket",
        "Sec-WebSocket-Protocol": SUBPROTOCOL,
        [ADMISSION_HEADER]: JSON.stringify(admission),
      },
    });
    if (response.status !== 101) throw refusalOfObject(response);
    // A revocation between the rows' verdict and now found nobody to disconnect.
    waitUntil(
      isTokenRevoked(db, tokenNonce).then((revoked) =>
        revoked ? stub.revokeCredential(tokenNonce) : undefined,
      ),
    );
    return response;
  } catch (error) {
    await markDisconnected(db, id);
    throw error;
  }
}

function refusalOfObject({ headers, status }: Response): Refusal | Error {
  switch (headers.get(ERROR_HEADER)) {
    case "unavailable":
      return new Refusal("going_away", "the server restarts");
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

function uuidOf(bytes: Uint8Array): string {
  return toHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
