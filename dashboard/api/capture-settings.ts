/** Which requests of a tunnel are captured, and whether they may be replayed. */
import { queryOptions } from "@tanstack/react-query";
import type { TunnelCaptureSettings } from "../../protocol/schemas/inspector/captures.ts";
import { load } from "./session.ts";

export const captureSettingsQuery = (id: string) =>
  queryOptions({
    queryKey: ["capture-settings", id],
    queryFn: ({ signal }) => load<TunnelCaptureSettings>(`/tunnels/${id}/inspector`, signal),
  });
