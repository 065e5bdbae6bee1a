/** How many members, domains and reserved names the organization has. */
import { queryOptions } from "@tanstack/react-query";
import { loadList } from "../../api/lists.ts";

const countQuery = (path: string) =>
  queryOptions({
    queryKey: ["count", path],
    queryFn: async ({ signal }) => (await loadList(path, signal)).length,
  });

export const membersCountQuery = (organizationId: string) =>
  countQuery(`/orgs/${organizationId}/members`);
export const domainsCountQuery = countQuery("/domains");
export const namesCountQuery = countQuery("/reserved-subdomains");
