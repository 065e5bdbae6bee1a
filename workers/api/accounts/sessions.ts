/** /auth: renewing, listing and ending sessions. */
import {
  AccessToken,
  RenewSession,
  SessionList,
  type Session,
} from "../../../protocol/schemas/accounts/accounts.ts";
import { IdParams, Ok } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { signAccessToken } from "../../identity/tokens/access-tokens.ts";
import { getFirstOrganizationTerms } from "../../identity/organization-terms.ts";
import { deriveSuccessors } from "../../identity/tokens/refresh-tokens.ts";
import {
  listSessions,
  refreshSession,
  revokeSession,
  type SessionRow,
} from "../../store/accounts/sessions.ts";
import type { UserActor } from "../../store/audit.ts";
import { allow, allowSession } from "../guard.ts";
import {
  createRouter,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
  type Guard,
} from "../route.ts";
import { describeDevice } from "./device-name.ts";
import { renewalRateLimited } from "../rate-limit.ts";
import {
  clearRefreshCookie,
  hasRefreshCookie,
  readRefreshCookie,
  setRefreshCookie,
} from "./refresh-cookie.ts";

export const sessions = createRouter();

/** The handler reads the cookie. */
const refreshCookie: Guard = { security: ["refreshCookie"], failures: ["unauthorized"] };

sessions.openapi(
  route({
    operationId: "refreshSession",
    method: "post",
    path: "/auth/refresh",
    summary: "Renew the access token with the refresh cookie",
    description:
      "`user_id` is whose session the caller expects. A cookie of another user's session is refused with 401 and stays valid. So are two cookies of the name, and, for a browser on https, a cookie without its companion `__Host-qnt_binding`.",
    guard: [renewalRateLimited, refreshCookie],
    query: RenewSession,
    setsCookie: true,
    responses: {
      200: jsonResponse("A new access token. The refresh cookie is replaced too.", AccessToken),
    },
    failures: ["forbidden"],
  }),
  async (c) => {
    refuseForeignOrigin(c);
    const { config, db, address } = c.var;
    if (!hasRefreshCookie(c))
      throw new ApiError("unauthorized", "The request has no cookie qnt_refresh. Log in first.");
    const current = await readRefreshCookie(c);
    if (current === "not_own") throw notOwnSession();
    const successors = current ? await deriveSuccessors(config, current) : [];
    const renewed =
      current &&
      (await refreshSession(db, {
        ...current,
        nextHash: successors[0]!.hash,
        expectedUserId: c.req.valid("query").user_id,
        ip: address,
        terms: getFirstOrganizationTerms(config),
      }));
    if (renewed === "another_user") throw notOwnSession();
    const next = renewed && successors.find(({ hash }) => hash === renewed.refreshHash);
    // The cookie stays: this response could arrive after that of a login in another tab, whose cookie it would delete.
    if (!next) throw new ApiError("unauthorized", "The session has ended. Log in again.");
    await setRefreshCookie(c, next);
    const { userId: sub, orgId: org, role } = renewed;
    const claims = { sub, org, role, sid: current.sessionId };
    return c.json({ access_token: await signAccessToken(config, claims) }, 200);
  },
);

sessions.openapi(
  route({
    operationId: "logOut",
    method: "post",
    path: "/auth/logout",
    summary: "Log out",
    guard: allowSession(),
    setsCookie: true,
    responses: {
      200: jsonResponse("The session has ended, and its tokens are no longer valid.", Ok),
    },
  }),
  async (c) => {
    // The outcome does not matter: another request may have ended the session in the meantime.
    await revokeSession(c.var.db, getSessionActor(c), c.var.session.sessionId);
    clearRefreshCookie(c);
    return c.json({ ok: true as const }, 200);
  },
);

sessions.openapi(
  route({
    operationId: "listSessions",
    method: "get",
    path: "/auth/sessions",
    summary: "List the sessions of the account",
    guard: allow("account:self"),
    responses: { 200: jsonResponse("The sessions, newest first.", SessionList) },
  }),
  async (c) => {
    const { userId, sessionId } = c.var.principal;
    const rows = await listSessions(c.var.db, userId);
    return c.json({ sessions: rows.map((row) => toSession(row, sessionId)) }, 200);
  },
);

sessions.openapi(
  route({
    operationId: "endSession",
    method: "delete",
    path: "/auth/sessions/{id}",
    summary: "End a session",
    guard: allowSession(),
    params: IdParams,
    setsCookie: true,
    responses: {
      200: jsonResponse("The session has ended, and its tokens are no longer valid.", Ok),
    },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    switch (await revokeSession(c.var.db, getSessionActor(c), id)) {
      case "revoked":
        if (id === c.var.session.sessionId) clearRefreshCookie(c);
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("session");
    }
  },
);

function getSessionActor(c: ApiContext): UserActor {
  const { userId, orgId } = c.var.session;
  return { userId, orgId, ip: c.var.address };
}

/** The cookies stay: clearing the one that this host set would leave the one that another host set. */
function notOwnSession(): ApiError {
  const message = "The refresh cookie may have been set by another site. Log in again.";
  return new ApiError("unauthorized", message);
}

function toSession(row: SessionRow, currentId: string): Session {
  const { id, device, ip, createdAt, lastSeenAt } = row;
  return {
    id,
    device: describeDevice(device) || "Unknown device",
    ip,
    createdAt: createdAt.toISOString(),
    lastSeenAt: lastSeenAt.toISOString(),
    current: id === currentId,
  };
}

/** What browsers say about a page's request to its own origin, and about an address that a person has typed. */
const OWN_FETCH_SITES = ["same-origin", "none"];

/** Pages of tunnels are on the same site as this service, so SameSite does not protect the cookie from them. */
function refuseForeignOrigin(c: ApiContext): void {
  const origin = c.req.header("origin");
  const host = URL.parse(origin ?? "")?.host;
  const isOwn =
    origin === undefined || host === c.req.header("host") || origin === c.var.config.publicOrigin;
  const fetchSite = c.req.header("sec-fetch-site") ?? "none";
  if (!isOwn || !OWN_FETCH_SITES.includes(fetchSite)) {
    throw new ApiError("forbidden", "Only pages of this service may renew a session.");
  }
}
