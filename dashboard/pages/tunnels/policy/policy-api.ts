/** The traffic policy of a tunnel in the API. */
import { queryOptions, useQueryClient } from "@tanstack/react-query";
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import type { PolicyDryRun } from "../../../../protocol/schemas/access/policy-dry-run.ts";
import { call, load } from "../../../api/session.ts";
import { updateCachedTunnel } from "../../../api/tunnels.ts";
import { notify, notifyOfError } from "../../../ui/feedback/notifications.tsx";

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

  async function store(policy: unknown): Promise<void> {
    const method = policy === null ? "DELETE" : "PUT";
    const path = `/tunnels/${tunnelId}/policy`;
    const saved = await call<TunnelPolicy>(method, path, policy ?? undefined);
    await queries.cancelQueries(policyQuery(tunnelId));
    queries.setQueryData(policyQuery(tunnelId).queryKey, saved.policy);
    const policyActions = saved.policy?.actions.length ?? 0;
    await updateCachedTunnel(queries, tunnelId, { policyActions });
  }

  /** @param policy null removes it. @param previous the policy that the undo restores. */
  return async (policy: unknown, previous: TrafficPolicy | null): Promise<void> => {
    await store(policy);
    const act = () => void store(previous).catch(notifyOfError);
    const message = policy === null ? "The policy was removed." : "The policy is in force.";
    notify(message, { label: "Undo", act }, `policy ${tunnelId}`);
  };
}
