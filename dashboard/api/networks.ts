/** The private networks of the organization, and their devices. */
import { queryOptions } from "@tanstack/react-query";
import type { Device, PrivateNetwork } from "../../protocol/schemas/networks.ts";
import { LIST_MAX_ROWS } from "../../protocol/limits.ts";
import { LIST_RELOAD_MS, loadList } from "./lists.ts";
import { load } from "./session.ts";

/** Relays report every two seconds. */
const NETWORKS_RELOAD_MS = 3_000;

export const networksQuery = queryOptions({
  queryKey: ["networks"],
  queryFn: ({ signal }) => load<PrivateNetwork[]>("/private-networks", signal),
  refetchInterval: NETWORKS_RELOAD_MS,
});

export const networkQuery = (id: string) =>
  queryOptions({
    queryKey: ["networks", id],
    queryFn: ({ signal }) => load<PrivateNetwork>(`/private-networks/${id}`, signal),
    refetchInterval: NETWORKS_RELOAD_MS,
  });

export const networkDevicesQuery = (id: string) =>
  queryOptions({
    queryKey: ["networks", id, "devices"],
    queryFn: ({ signal }) => loadList<Device>(`/private-networks/${id}/devices`, signal),
    // A list of several pages costs as many requests.
    refetchInterval: ({ state }) =>
      (state.data?.length ?? 0) < LIST_MAX_ROWS ? NETWORKS_RELOAD_MS : LIST_RELOAD_MS,
  });
