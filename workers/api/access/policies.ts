/** /tunnels/{id}/policy: what is done with visitors' requests before they go to the agent. */
import type { z } from "zod";
import { TrafficPolicy, TunnelPolicy } from "../../../protocol/schemas/access/policies.ts";
import { Id } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { findPolicy, setPolicy } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { getMemberActor, jsonResponse, createRouter, notFound, route } from "../route.ts";
import { requireGateChange } from "./gate-changes.ts";

export const policies = createRouter();

policies.openapi(
  route({
    method: "get",
    path: "/tunnels/{id}/policy",
    summary: "Read a tunnel's traffic policy",
    guard: allow("tunnels:read"),
    params: Id,
    responses: { 200: jsonResponse("`policy` is null where there is none.", TunnelPolicy) },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const policy = await findPolicy(c.var.db, c.var.principal.orgId, id);
    if (policy === undefined) throw notFound("such tunnel");
    return c.json({ id, policy }, 200);
  },
);

policies.openapi(
  route({
    method: "put",
    path: "/tunnels/{id}/policy",
    summary: "Set a tunnel's traffic policy",
    description: "It replaces the one before. The next request is judged by it.",
    guard: allow("tunnels:write"),
    params: Id,
    body: TrafficPolicy,
    responses: { 200: jsonResponse("In force.", TunnelPolicy) },
    failures: ["bad_policy", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const policy = c.req.valid("json");
    if (!c.var.config.ALLOW_PRIVATE_FETCH) requireSecureIssuers(policy);
    requireGateChange(await setPolicy(c.var.db, getMemberActor(c), id, policy));
    return c.json({ id, policy }, 200);
  },
  (result) => {
    if (result.success) return;
    throw result.target === "json" ? badPolicy(result.error.issues) : notFound();
  },
);

policies.openapi(
  route({
    method: "delete",
    path: "/tunnels/{id}/policy",
    summary: "Remove a tunnel's traffic policy",
    guard: allow("tunnels:write"),
    params: Id,
    responses: { 200: jsonResponse("`policy` is null.", TunnelPolicy) },
    failures: ["invalid_request", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    requireGateChange(await setPolicy(c.var.db, getMemberActor(c), id, null));
    return c.json({ id, policy: null }, 200);
  },
);

type Issue = Pick<z.core.$ZodIssue, "path" | "message">;

function badPolicy(issues: Issue[]): ApiError {
  const fields = issues.map(({ path, message }) => ({ path: pathText(path), message }));
  const [first] = fields;
  // What is no object at all is no policy, good or bad.
  if (first?.path === "") {
    return new ApiError("invalid_request", "The body must be a policy: an object with `actions`.");
  }
  return new ApiError("bad_policy", `${first?.path}: ${first?.message}.`, { fields });
}

/** `actions[2].path_prefix`. */
function pathText(path: PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
}

function requireSecureIssuers({ actions }: TrafficPolicy): void {
  actions.forEach((action, index) => {
    if (action.kind !== "jwt_validation") return;
    action.allowed_issuers?.forEach((issuer, at) => {
      if (issuer.startsWith("https://")) return;
      const path = ["actions", index, "allowed_issuers", at];
      throw badPolicy([{ path, message: "must be a URL that starts with https://" }]);
    });
  });
}
