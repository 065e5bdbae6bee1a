/** Releases a domain, verified or not. */
import { useQueryClient } from "@tanstack/react-query";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { domainsQuery } from "../../api/domains.ts";
import { call } from "../../api/session.ts";
import { notify } from "../../ui/feedback/notifications.tsx";

export function useReleaseDomain(): (domain: CustomDomain) => Promise<void> {
  const queries = useQueryClient();
  return async ({ id, domain }) => {
    await call("DELETE", `/domains/${id}`);
    await queries.invalidateQueries(domainsQuery);
    notify(`${domain} was removed.`);
  };
}
