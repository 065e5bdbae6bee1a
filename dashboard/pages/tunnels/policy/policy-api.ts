/** The traffic policy of a tunnel in the API. */
import { queryOptions, useQueryClient, type QueryClient } from "@tanstack/react-query";
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import type { PolicyDryRun } from "../../../../protocol/schemas/access/policy-dry-run.ts";
import { RequestError } from "../../../api/request.ts";
import { call, load } from "../../../api/session.ts";
import { updateCachedTunnel } from "../../../api/tunnels.ts";
import { notify, notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { formatPolicy } from "./policy-document.ts";

/** How often a dry run is repeated while the tunnel has no captured requests. */
const EMPTY_RELOAD_MS = 3_000;

interface TunnelPolicy {
  policy: TrafficPolicy | null;
}

export const policyQuery = (tunnelId: string) =>
  queryOptions({
    queryKey: ["policy", tunnelId],
    queryFn: async ({ signal }) =>
      (await load<TunnelPolicy>(`/tunnels/${tunnelId}/policy`, signal)).policy,
  });

/** The policy in force now, whatever was loaded before. */
export const fetchPolicy = (queries: QueryClient, tunnelId: string) =>
  queries.fetchQuery({ ...policyQuery(tunnelId), staleTime: 0 });

/** @param text a policy in JSON. */
export const dryRunQuery = (tunnelId: string, text: string) =>
  queryOptions({
    queryKey: ["policy-dry-run", tunnelId, text],
    queryFn: ({ signal }) =>
      call<PolicyDryRun>("POST", `/tunnels/${tunnelId}/policy/dry-run`, JSON.parse(text), signal),
    refetchInterval: ({ state }) => (state.data?.evaluated === 0 ? EMPTY_RELOAD_MS : false),
    refetchOnWindowFocus: false,
  });

/** Saves a policy, or removes it, and offers to undo that. */
export function useSavePolicy(tunnelId: string) {
  const queries = useQueryClient();

  /** @returns the policy in force afterward. */
  async function replace(shown: TrafficPolicy | null, policy: unknown) {
    const current = await fetchPolicy(queries, tunnelId);
    if (formatPolicy(current) !== formatPolicy(shown)) {
      const message =
        "The policy was changed meanwhile, so that nothing was done. Review the policy that is in force now first.";
      throw new RequestError({ error: "conflict", message }, null);
    }
    const method = policy === null ? "DELETE" : "PUT";
    const path = `/tunnels/${tunnelId}/policy`;
    const saved = await call<TunnelPolicy>(method, path, policy ?? undefined);
    await queries.cancelQueries(policyQuery(tunnelId));
    queries.setQueryData(policyQuery(tunnelId).queryKey, saved.policy);
    const policyActions = saved.policy?.actions.length ?? 0;
    await updateCachedTunnel(queries, tunnelId, { policyActions });
    // The stored policy can have another order of keys than the response.
    return fetchPolicy(queries, tunnelId).catch(() => saved.policy);
  }

  /**
   * @param policy null removes it.
   * @param shown the policy that the user has seen as the one in force, which the undo restores.
   * @throws RequestError also when another policy is in force now, which the user has not seen.
   */
  return async (policy: unknown, shown: TrafficPolicy | null): Promise<void> => {
    const saved = await replace(shown, policy);
    const act = () => void replace(saved, shown).catch(notifyOfError);
    const message = policy === null ? "The policy was removed." : "The policy is in force.";
    notify(message, { label: "Undo", act }, `policy ${tunnelId}`);
  };
}
