/** How many members, domains and reserved names the organization has. */
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/session.ts";

/** @param path of a list. A list of more than one page is counted as one page (`LIST_MAX_ROWS`). */
const countQuery = (path: string) =>
  queryOptions({
    queryKey: ["count", path],
    queryFn: async ({ signal }) => (await call<unknown[]>("GET", path, undefined, signal)).length,
  });

export const membersCountQuery = (organizationId: string) =>
  countQuery(`/orgs/${organizationId}/members`);
export const domainsCountQuery = countQuery("/domains");
export const namesCountQuery = countQuery("/reserved-subdomains");
