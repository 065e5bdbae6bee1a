/** Which requests of a tunnel are captured, and whether they may be replayed. */
import { queryOptions } from "@tanstack/react-query";
import type { TunnelCaptureSettings } from "../../protocol/schemas/inspector/captures.ts";
import { call } from "./session.ts";

export const captureSettingsQuery = (id: string) =>
  queryOptions({
    queryKey: ["capture-settings", id],
    queryFn: ({ signal }) =>
      call<TunnelCaptureSettings>("GET", `/tunnels/${id}/inspector`, undefined, signal),
  });
