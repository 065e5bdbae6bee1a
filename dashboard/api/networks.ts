/** The private networks of the organization, and their devices. */
import { queryOptions } from "@tanstack/react-query";
import type { Device, PrivateNetwork } from "../../protocol/schemas/networks.ts";
import { call } from "./session.ts";

/** Relays report every two seconds. */
const NETWORKS_RELOAD_MS = 3_000;

export const networksQuery = queryOptions({
  queryKey: ["networks"],
  queryFn: ({ signal }) => call<PrivateNetwork[]>("GET", "/private-networks", undefined, signal),
  refetchInterval: NETWORKS_RELOAD_MS,
});

export const networkQuery = (id: string) =>
  queryOptions({
    queryKey: ["networks", id],
    queryFn: ({ signal }) =>
      call<PrivateNetwork>("GET", `/private-networks/${id}`, undefined, signal),
    refetchInterval: NETWORKS_RELOAD_MS,
  });

export const networkDevicesQuery = (id: string) =>
  queryOptions({
    queryKey: ["networks", id, "devices"],
    queryFn: ({ signal }) =>
      call<Device[]>("GET", `/private-networks/${id}/devices`, undefined, signal),
    refetchInterval: NETWORKS_RELOAD_MS,
  });
