/** /tunnels/{id}/auth: the password gate of a tunnel (HTTP Basic authentication). */
import {
  BasicAuthState,
  SetBasicAuth,
  TunnelBasicAuth,
} from "../../../protocol/schemas/access/basic-auth.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { hashPassword } from "../../identity/accounts/password-hashing.ts";
import { hasFeature } from "../../store/billing/plans.ts";
import { setBasicAuth } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { createRouter, getHashCaller, getMemberActor, jsonResponse, route } from "../route.ts";
import {
  requireGates,
  requireSettingChanged,
  requireHttpTunnel,
} from "../tunnels/setting-changes.ts";

export const basicAuth = createRouter();

basicAuth.openapi(
  route({
    operationId: "getTunnelPassword",
    method: "get",
    path: "/tunnels/{id}/auth",
    summary: "Get the name that visitors of a tunnel enter",
    description: "The password itself is stored as a hash and never returned.",
    guard: allow("tunnels:read"),
    params: IdParams,
    responses: {
      200: jsonResponse("`username` is null when visitors need no password.", TunnelBasicAuth),
    },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { username } = await requireGates(c, id);
    return c.json({ id, auth_enabled: username !== null, username }, 200);
  },
);

basicAuth.openapi(
  route({
    operationId: "setTunnelPassword",
    method: "put",
    path: "/tunnels/{id}/auth",
    summary: "Set the password that visitors of a tunnel need",
    description:
      "`user` is another name for `username`. The password is required from the next request on.",
    guard: allow("tunnels:write"),
    params: IdParams,
    body: SetBasicAuth,
    example: { username: "visitor", password: "correct horse battery staple" },
    responses: { 200: jsonResponse("The password is in force.", BasicAuthState) },
    failures: ["upgrade_required", "expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { username, user, password } = c.req.valid("json");
    await requireHttpTunnel(c, id);
    if (!hasFeature("tunnel_password", c.var.principal, new Date())) {
      throw new ApiError("upgrade_required", "Your plan does not include passwords for tunnels.");
    }
    const passwordHash = await hashPassword(getHashCaller(c, c.var.principal.userId), password);
    const auth = { username: username ?? user ?? "", passwordHash };
    requireSettingChanged(await setBasicAuth(c.var.db, getMemberActor(c), id, auth));
    return c.json({ id, auth_enabled: true }, 200);
  },
);

basicAuth.openapi(
  route({
    operationId: "removeTunnelPassword",
    method: "delete",
    path: "/tunnels/{id}/auth",
    summary: "Remove the password of a tunnel",
    guard: allow("tunnels:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "A password is no longer required. Other gates still apply.",
        BasicAuthState,
      ),
    },
    failures: ["invalid_request", "expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    requireSettingChanged(await setBasicAuth(c.var.db, getMemberActor(c), id, null));
    return c.json({ id, auth_enabled: false }, 200);
  },
);
