/** Who may call a route: everybody who is signed in and whose role has the permission. */
import { createMiddleware } from "hono/factory";
import { SESSION_SEEN_MS } from "../../protocol/limits.ts";
import { ApiError } from "../errors.ts";
import { verifyAccessToken } from "../identity/access-tokens.ts";
import { hasPermission, type Permission } from "../identity/permissions.ts";
import { findPrincipal, noteSessionUse } from "../store/sessions.ts";
import { afterAnswer, type ApiContext, type ApiEnv } from "./context.ts";

/** Spread into a route's definition: the guard, and the same in the OpenAPI document. */
export function allow(permission: Permission) {
  const guard = createMiddleware<ApiEnv>(async (c, next) => {
    await authenticate(c);
    if (!hasPermission(c.var.principal.role, permission)) {
      throw new ApiError("forbidden", `Your role, ${c.var.principal.role}, lacks ${permission}.`);
    }
    await next();
  });
  return { middleware: guard, security: [{ bearer: [] }] };
}

async function authenticate(c: ApiContext): Promise<void> {
  const token = c.req.header("authorization")?.match(/^Bearer +(\S+)$/i)?.[1];
  const claims = token === undefined ? null : await verifyAccessToken(c.var.config, token);
  const principal = claims && (await findPrincipal(c.var.db, claims));
  if (token === undefined || !principal) {
    throw new ApiError("unauthorized", "A valid bearer token is required.");
  }
  c.set("principal", principal);
  c.set("accessToken", token);
  const { sessionId, lastSeenAt } = principal;
  if (Date.now() - lastSeenAt.getTime() > SESSION_SEEN_MS) {
    afterAnswer(c, "use_not_noted", noteSessionUse(c.var.db, { sessionId, ip: c.var.address }));
  }
}
