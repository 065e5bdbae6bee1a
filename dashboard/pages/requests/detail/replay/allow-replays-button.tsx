/** Allows replays of a tunnel's requests, beside a request that the user may want to replay. */
import { useQueryClient } from "@tanstack/react-query";
import type { TunnelCaptureSettings } from "../../../../../protocol/schemas/inspector/captures.ts";
import { captureSettingsQuery } from "../../../../api/capture-settings.ts";
import { call, load } from "../../../../api/session.ts";
import { useTunnel } from "../../../../api/tunnels.ts";
import { ActionButton } from "../../../../ui/button.tsx";

export function AllowReplaysButton({ tunnelId }: { tunnelId: string }) {
  const queries = useQueryClient();
  const { data: tunnel } = useTunnel(tunnelId);
  async function allow(): Promise<void> {
    const path = `/tunnels/${tunnelId}/inspector`;
    // The request replaces all settings, and another user may have changed some of them.
    const settings = await load<TunnelCaptureSettings>(path);
    const changed = { ...settings, allowReplay: true };
    const saved = await call<TunnelCaptureSettings>("PUT", path, changed);
    queries.setQueryData(captureSettingsQuery(tunnelId).queryKey, saved);
  }
  return (
    <ActionButton action={allow}>Allow replays for {tunnel?.name ?? "this tunnel"}</ActionButton>
  );
}
