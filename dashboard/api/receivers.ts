/** The webhook receivers of the organization. */
import { queryOptions } from "@tanstack/react-query";
import type { Receiver, ReceiverState } from "../../protocol/schemas/webhooks.ts";
import { load } from "./session.ts";

const RECEIVERS_RELOAD_MS = 10_000;

export const receiversQuery = queryOptions({
  queryKey: ["receivers"],
  queryFn: ({ signal }) => load<Receiver[]>("/webhook-receivers", signal),
  refetchInterval: RECEIVERS_RELOAD_MS,
});

/** One receiver with the state of its deliveries, which the list does not have. */
export const receiverQuery = (id: string) =>
  queryOptions({
    queryKey: ["receivers", id],
    queryFn: ({ signal }) => load<ReceiverState>(`/webhook-receivers/${id}`, signal),
    refetchInterval: RECEIVERS_RELOAD_MS,
  });
