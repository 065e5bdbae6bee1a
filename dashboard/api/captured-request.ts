/** One captured request with its headers, bodies and messages. */
import { queryOptions } from "@tanstack/react-query";
import type { CaptureDetail } from "../../protocol/schemas/inspector/captures.ts";
import { load } from "./session.ts";

/** How often a request that is still in progress is loaded: its messages and events appear as they arrive. */
const OPEN_RELOAD_MS = 1_000;

export const capturedRequestQuery = (id: string) =>
  queryOptions({
    queryKey: ["captured-request", id],
    queryFn: ({ signal }) => load<CaptureDetail>(`/inspector/${encodeURIComponent(id)}`, signal),
    refetchInterval: ({ state }) => (state.data?.state === "open" ? OPEN_RELOAD_MS : false),
    // A request that has ended no longer changes.
    staleTime: ({ state }) =>
      state.data === undefined || state.data.state === "open" ? 0 : Infinity,
  });
