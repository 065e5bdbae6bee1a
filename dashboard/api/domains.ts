/** The custom domains of the organization, and its reserved subdomains. */
import { queryOptions } from "@tanstack/react-query";
import type { CustomDomain } from "../../protocol/schemas/domains/domains.ts";
import type { ReservedSubdomain } from "../../protocol/schemas/domains/reserved-subdomains.ts";
import { getListReloadMs, loadList } from "./lists.ts";

export const domainsQuery = queryOptions({
  queryKey: ["domains"],
  queryFn: ({ signal }) => loadList<CustomDomain>("/domains", signal),
  refetchInterval: ({ state }) => getListReloadMs(state.data),
});

export const reservedSubdomainsQuery = queryOptions({
  queryKey: ["reserved-subdomains"],
  queryFn: ({ signal }) => loadList<ReservedSubdomain>("/reserved-subdomains", signal),
  refetchInterval: ({ state }) => getListReloadMs(state.data),
});
