/** Whether the user can replay a request: their role, the server and the tunnel decide. */
import { useQuery } from "@tanstack/react-query";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import { captureSettingsQuery } from "../../../../api/capture-settings.ts";
import { useHasRole } from "../../../../app/roles.ts";

/**
 * `impossible`: the user's role or the kind of the request excludes it, or its headers were not stored. `unknown`: the
 * settings can't be loaded, so that the API decides.
 */
type ReplayPermission =
  | "loading"
  | "allowed"
  | "unknown"
  | "off_on_server"
  | "off_for_tunnel"
  | "impossible";

export function useReplayPermission({
  kind,
  truncated,
  tunnel_id: tunnelId,
}: CaptureDetail): ReplayPermission {
  const isPossible = useHasRole("member") && kind !== "websocket" && !truncated.request_head;
  const { data, isLoading } = useQuery({ ...captureSettingsQuery(tunnelId), enabled: isPossible });
  if (!isPossible) return "impossible";
  if (data === undefined) return isLoading ? "loading" : "unknown";
  if (!data.serverAllowsReplay) return "off_on_server";
  return data.allowReplay ? "allowed" : "off_for_tunnel";
}
