/** Headers of a captured request that the tunnel's traffic policy sets. */
import { useQuery } from "@tanstack/react-query";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { policyQuery } from "../../tunnels/policy/policy-api.ts";

/**
 * The names of headers whose value is the one that the policy sets now. The capture does not tell who set a header, and the
 * policy may have been another one then.
 */
export function usePolicyHeaders(request: CaptureDetail): ReadonlySet<string> {
  const { data: policy } = useQuery(policyQuery(request.tunnel_id));
  const names = new Set<string>();
  for (const action of policy?.actions ?? []) {
    if (action.kind !== "header_set") continue;
    const name = action.name.toLowerCase();
    if (request.request_headers[name] === action.value) names.add(name);
  }
  return names;
}
