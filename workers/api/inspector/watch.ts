/**
 * GET /inspector/ws: captured requests as they happen. The watcher is authorized here; then the connection belongs to
 * the organization's object.
 */
import {
  WATCH_HEADER,
  WATCH_URL,
  type WatcherAdmission,
} from "../../../durable-objects/organization/watcher-admission.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import { WATCHER_RETRY_AFTER_MS } from "../../../protocol/limits.ts";
import { WATCH_BEARER_PREFIX, WATCH_PROTOCOL } from "../../../protocol/captures/watch-protocol.ts";
import { WatchQuery } from "../../../protocol/schemas/inspector/watching.ts";
import { isDraining, watchedOrganizations } from "../../draining.ts";
import { callObject } from "../../call-object.ts";
import { ApiError } from "../../errors.ts";
import { organizationObject } from "../../objects.ts";
import { hasTunnel } from "../../store/tunnels/tunnels.ts";
import { allowWatcher, getOrgId } from "../guard.ts";
import { createRouter, documentRoute, invalidInput, notFound, type ApiContext } from "../route.ts";
import { getOfferedProtocols, requireUpgrade } from "../upgrade.ts";

export const inspectorWatch = createRouter();

const watcher = allowWatcher("inspector:read");

documentRoute(inspectorWatch, {
  operationId: "watchCapturedRequests",
  method: "get",
  path: "/inspector/ws",
  summary: "Watch captured requests as they happen",
  description:
    "A WebSocket (docs/protocols/live-view.md). A browser sends the access token as a subprotocol, `bearer.<jwt>`, because it cannot set other headers; programs send `Authorization`.",
  guard: watcher,
  query: WatchQuery,
  responses: {
    101: { description: "The WebSocket is open. Each message is one captured request." },
  },
  failures: ["not_found", "upgrade_expected", "rate_limited", "unavailable"],
});

inspectorWatch.get("/inspector/ws", watcher.middleware, async (c) => {
  requireUpgrade(c, "Watchers");
  const query = WatchQuery.safeParse(c.req.query());
  if (!query.success) throw invalidInput(c, { target: "query", error: query.error });
  const orgId = getOrgId(c);
  const { tunnel_id: tunnelId = null, batch } = query.data;
  if (tunnelId !== null && !(await hasTunnel(c.var.db, orgId, tunnelId))) {
    throw notFound("tunnel");
  }
  const isBatched = batch === "1";
  const receivesQueries = c.var.agentToken === undefined;
  return handOver(c, orgId, { ...getCredential(c), tunnelId, isBatched, receivesQueries });
});

function getCredential(c: ApiContext): Pick<WatcherAdmission, "credentialId" | "userId"> {
  const { agentToken, principal } = c.var;
  if (agentToken) return { credentialId: agentToken.id, userId: agentToken.createdBy };
  return { credentialId: principal.sessionId, userId: principal.userId };
}

async function handOver(
  c: ApiContext,
  orgId: string,
  admission: WatcherAdmission,
): Promise<Response> {
  const retry = { retryAfterSeconds: WATCHER_RETRY_AFTER_MS / 1000 };
  // A server that is stopping disconnects its watchers only once, so it accepts no new ones.
  if (isDraining())
    throw new ApiError("unavailable", "The server is restarting. Try again.", retry);
  const headers = {
    Upgrade: "websocket",
    "Sec-WebSocket-Protocol": chooseProtocol(c),
    [WATCH_HEADER]: JSON.stringify(admission),
  };
  const answer = await callObject(organizationObject(c.env, orgId).fetch(WATCH_URL, { headers }));
  if (answer.status === 101) {
    watchedOrganizations.add(orgId);
    return answer;
  }
  switch (answer.headers.get(ERROR_HEADER)) {
    case "unauthorized":
      throw new ApiError("unauthorized", "The session or token has ended. Log in again.");
    case "rate_limited":
      throw new ApiError(
        "rate_limited",
        "Too many watchers are connected for this organization. Try again later.",
        retry,
      );
    case "unavailable":
      throw new ApiError("unavailable", "The server is restarting. Try again.", retry);
    default:
      throw new Error(`the organization's object answered ${answer.status}`);
  }
}

/** A browser closes a connection when the response names none of the subprotocols that it offered. */
function chooseProtocol(c: ApiContext): string {
  const offered = getOfferedProtocols(c);
  if (offered.includes(WATCH_PROTOCOL)) return WATCH_PROTOCOL;
  return offered.find((protocol) => protocol.startsWith(WATCH_BEARER_PREFIX)) ?? "";
}
