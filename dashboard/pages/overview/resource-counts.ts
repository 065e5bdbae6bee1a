/** How many members, domains and reserved names the organization has. */
import { queryOptions } from "@tanstack/react-query";
import { load } from "../../api/session.ts";

/** @param path of a list. A list of more than one page is counted as one page (`LIST_MAX_ROWS`). */
const countQuery = (path: string) =>
  queryOptions({
    queryKey: ["count", path],
    queryFn: async ({ signal }) => (await load<unknown[]>(path, signal)).length,
  });

export const membersCountQuery = (organizationId: string) =>
  countQuery(`/orgs/${organizationId}/members`);
export const domainsCountQuery = countQuery("/domains");
export const namesCountQuery = countQuery("/reserved-subdomains");
