/** The private networks of the organization, and their devices. */
import { queryOptions } from "@tanstack/react-query";
import type { Device, PrivateNetwork } from "../../protocol/schemas/networks.ts";
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
    queryFn: ({ signal }) => load<Device[]>(`/private-networks/${id}/devices`, signal),
    refetchInterval: NETWORKS_RELOAD_MS,
  });
