/** /tunnels/{id}/policy: the traffic policy, whose actions apply to requests before they go to the agent. */
import type { ZodError, z } from "zod";
import { TrafficPolicy, TunnelPolicy } from "../../../protocol/schemas/access/policies.ts";
import { DryRunPolicy, PolicyDryRun } from "../../../protocol/schemas/access/policy-dry-run.ts";
import { formatPath } from "../../../protocol/schemas/issue-messages.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { callObject } from "../../call-object.ts";
import { ApiError } from "../../errors.ts";
import { tunnelObject } from "../../objects.ts";
import { setPolicy } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import {
  createRouter,
  describeField,
  getMemberActor,
  jsonResponse,
  invalidInput,
  route,
  type ApiContext,
} from "../route.ts";
import {
  requireGates,
  requireHttpTunnel,
  requireSettingChanged,
} from "../tunnels/setting-changes.ts";
import { findIssuerIssue } from "./policy-issuers.ts";

export const policies = createRouter();

policies.openapi(
  route({
    operationId: "getTrafficPolicy",
    method: "get",
    path: "/tunnels/{id}/policy",
    summary: "Get the traffic policy of a tunnel",
    guard: allow("tunnels:read"),
    params: IdParams,
    responses: {
      200: jsonResponse("The policy. `policy` is null when the tunnel has none.", TunnelPolicy),
    },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { policy } = await requireGates(c, id);
    return c.json({ id, policy }, 200);
  },
);

policies.openapi(
  route({
    operationId: "setTrafficPolicy",
    method: "put",
    path: "/tunnels/{id}/policy",
    summary: "Set the traffic policy of a tunnel",
    description: "Replaces the current policy, from the next request on.",
    guard: allow("tunnels:write"),
    params: IdParams,
    body: TrafficPolicy,
    example: {
      actions: [
        { kind: "deny", path_prefix: "/admin" },
        { kind: "rate_limit", requests_per_minute: 60, per_client_ip: true },
      ],
    },
    responses: { 200: jsonResponse("The policy is in force.", TunnelPolicy) },
    failures: ["bad_policy", "expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const policy = c.req.valid("json");
    requireAcceptedIssuers(c, policy);
    requireSettingChanged(await setPolicy(c.var.db, getMemberActor(c), id, policy));
    return c.json({ id, policy }, 200);
  },
  requireValidPolicy,
);

policies.openapi(
  route({
    operationId: "removeTrafficPolicy",
    method: "delete",
    path: "/tunnels/{id}/policy",
    summary: "Remove the traffic policy of a tunnel",
    guard: allow("tunnels:write"),
    params: IdParams,
    responses: { 200: jsonResponse("The tunnel has no policy; `policy` is null.", TunnelPolicy) },
    failures: ["invalid_request", "expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    requireSettingChanged(await setPolicy(c.var.db, getMemberActor(c), id, null));
    return c.json({ id, policy: null }, 200);
  },
);

policies.openapi(
  route({
    operationId: "dryRunTrafficPolicy",
    method: "post",
    path: "/tunnels/{id}/policy/dry-run",
    summary: "Test a traffic policy on captured requests",
    description:
      "Evaluates the newest captured requests of the tunnel as if this were its policy, and saves nothing. Other checks of the tunnel, such as a password, are not evaluated.",
    guard: allow("inspector:read"),
    params: IdParams,
    body: DryRunPolicy,
    example: { actions: [{ kind: "deny", path_prefix: "/admin" }], limit: 100 },
    responses: { 200: jsonResponse("What the policy would have done.", PolicyDryRun) },
    failures: ["bad_policy", "invalid_request", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { limit, ...policy } = c.req.valid("json");
    requireAcceptedIssuers(c, policy);
    await requireHttpTunnel(c, id);
    const dryRun = tunnelObject(c.env, id).dryRunPolicy({ policy, limit });
    return c.json(await callObject(dryRun), 200);
  },
  requireValidPolicy,
);

/** @throws ApiError with the fields that are wrong. */
function requireValidPolicy(
  result: { success: true } | { success: false; target: string; error: Pick<ZodError, "issues"> },
  c: ApiContext,
): undefined {
  if (result.success) return undefined;
  throw result.target === "json" ? badPolicy(result.error.issues) : invalidInput(c, result);
}

function requireAcceptedIssuers(c: ApiContext, policy: TrafficPolicy): void {
  const issue = findIssuerIssue(policy, c.var.config);
  if (issue) throw badPolicy([issue]);
}

type Issue = Pick<z.core.$ZodIssue, "path" | "message">;

/** @param issues at least one. That of a body that is not an object has an empty path. */
function badPolicy(issues: Issue[]): ApiError {
  const fields = issues.map(({ path, message }) => ({ path: formatPath(path), message }));
  return new ApiError("bad_policy", describeField(fields[0]!), { fields });
}
