/** How many things the organization has. */
import { queryOptions } from "@tanstack/react-query";
import { call } from "../../api/session.ts";

const countQuery = (path: string) =>
  queryOptions({
    queryKey: ["count", path],
    queryFn: async ({ signal }) => (await call<unknown[]>("GET", path, undefined, signal)).length,
  });

export const membersCountQuery = (organizationId: string) =>
  countQuery(`/orgs/${organizationId}/members`);
export const domainsCountQuery = countQuery("/domains");
export const namesCountQuery = countQuery("/reserved-subdomains");
