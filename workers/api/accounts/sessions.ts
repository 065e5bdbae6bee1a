/** /auth: what becomes of a session once there is one: renewed, looked at, ended. */
import {
  AccessToken,
  SessionList,
  type Session,
} from "../../../protocol/schemas/accounts/accounts.ts";
import { Id, Ok } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { signAccessToken } from "../../identity/tokens/access-tokens.ts";
import { newOrganizationTerms } from "../../identity/new-organization.ts";
import { readRefreshToken, successorsOf } from "../../identity/tokens/refresh-tokens.ts";
import {
  listSessions,
  renewSession,
  revokeSession,
  type SessionRow,
} from "../../store/accounts/sessions.ts";
import { allow } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  createRouter,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";
import { describeDevice } from "./device-name.ts";
import { rateLimited } from "../rate-limit.ts";
import { clearRefreshCookie, readRefreshCookie, setRefreshCookie } from "./sign-in.ts";

export const sessions = createRouter();

sessions.openapi(
  route({
    method: "post",
    path: "/auth/refresh",
    summary: "Renew the access token by the refresh cookie",
    guard: rateLimited,
    responses: { 200: jsonResponse("The cookie is replaced too.", AccessToken) },
    failures: ["unauthorized", "forbidden"],
  }),
  async (c) => {
    refuseForeignOrigin(c);
    const { config, db, address } = c.var;
    const current = await readRefreshToken(config, readRefreshCookie(c) ?? "");
    const successors = current ? await successorsOf(config, current) : [];
    const renewed =
      current &&
      (await renewSession(db, {
        ...current,
        nextHash: successors[0]!.hash,
        ip: address,
        terms: newOrganizationTerms(config),
      }));
    const next = renewed && successors.find(({ hash }) => hash === renewed.refreshHash);
    if (!next) {
      clearRefreshCookie(c);
      throw new ApiError("unauthorized", "The session is over: log in again.");
    }
    setRefreshCookie(c, next);
    const { userId: sub, orgId: org, role } = renewed;
    const claims = { sub, org, role, sid: current.sessionId };
    return c.json({ access_token: await signAccessToken(config, claims) }, 200);
  },
);

sessions.openapi(
  route({
    method: "post",
    path: "/auth/logout",
    summary: "Log out",
    guard: allow("account:self"),
    responses: { 200: jsonResponse("The session is over, its tokens too.", Ok) },
  }),
  async (c) => {
    // Ended by another request meanwhile: that is as good.
    await revokeSession(c.var.db, getMemberActor(c), c.var.principal.sessionId);
    clearRefreshCookie(c);
    return c.json({ ok: true as const }, 200);
  },
);

sessions.openapi(
  route({
    method: "get",
    path: "/auth/sessions",
    summary: "Where the account is signed in",
    guard: allow("account:self"),
    responses: { 200: jsonResponse("Newest first.", SessionList) },
  }),
  async (c) => {
    const { userId, sessionId } = c.var.principal;
    const rows = await listSessions(c.var.db, userId);
    return c.json({ sessions: rows.map((row) => toSession(row, sessionId)) }, 200);
  },
);

sessions.openapi(
  route({
    method: "delete",
    path: "/auth/sessions/{id}",
    summary: "Sign out elsewhere",
    guard: allow("account:self"),
    params: Id,
    responses: { 200: jsonResponse("The session is over, its tokens too.", Ok) },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    switch (await revokeSession(c.var.db, getMemberActor(c), id)) {
      case "revoked":
        if (id === c.var.principal.sessionId) clearRefreshCookie(c);
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("such session");
    }
  },
);

function toSession(row: SessionRow, currentId: string): Session {
  const { id, device, ip, createdAt, lastSeenAt } = row;
  return {
    id,
    device: describeDevice(device),
    ip,
    createdAt: createdAt.toISOString(),
    lastSeenAt: lastSeenAt.toISOString(),
    current: id === currentId,
  };
}

/** A tunnel's page is of the same site as this service, so the cookie's SameSite lets it ask. */
function refuseForeignOrigin(c: ApiContext): void {
  const origin = c.req.header("origin");
  const host = URL.parse(origin ?? "")?.host;
  const isOwn =
    origin === undefined || host === c.req.header("host") || origin === c.var.config.publicOrigin;
  if (!isOwn || c.req.header("sec-fetch-site") === "cross-site") {
    throw new ApiError("forbidden", "Only the service's own pages may renew a session.");
  }
}
