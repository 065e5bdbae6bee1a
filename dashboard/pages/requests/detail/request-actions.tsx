/** The actions on a captured request: replay it, copy it as a command, save it. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import type {
  ReplayRequest,
  ReplayResult,
} from "../../../../protocol/schemas/inspector/replays.ts";
import { captureSettingsQuery } from "../../../api/capture-settings.ts";
import { RequestError } from "../../../api/request.ts";
import { call } from "../../../api/session.ts";
import { useShortcuts } from "../../../app/shortcuts.ts";
import { ActionButton, Button } from "../../../ui/button.tsx";
import { notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { copyCurl, saveArchive } from "../copy-and-replay.ts";
import { AllowReplaysButton } from "./replay/allow-replays-button.tsx";
import { ReplayEditor } from "./replay/replay-editor.tsx";
import { useReplayPermission } from "./replay/use-replay-permission.ts";

interface RequestActionsProps {
  request: CaptureDetail;
  onReplayed: (result: ReplayResult) => void;
}

export function RequestActions({ request, onReplayed }: RequestActionsProps) {
  const [isEditing, setEditing] = useState(false);
  const [isReplaying, setReplaying] = useState(false);
  const queries = useQueryClient();
  const permission = useReplayPermission(request);
  const isLoading = permission === "loading";
  // Keys that are pressed before the settings are loaded act too: the API refuses them if they are not allowed.
  const canReplay = isLoading || permission === "allowed" || permission === "unknown";

  /** @throws RequestError */
  async function replay(changes?: ReplayRequest): Promise<void> {
    setReplaying(true);
    try {
      onReplayed(await call<ReplayResult>("POST", `/inspector/${request.id}/replay`, changes));
      setEditing(false);
    } catch (error) {
      if (error instanceof RequestError && error.code === "replay_disabled") {
        void queries.invalidateQueries(captureSettingsQuery(request.tunnel_id));
      }
      throw error;
    } finally {
      setReplaying(false);
    }
  }
  const replayUnchanged = () => void replay().catch(notifyOfError);
  const copyCommand = () => copyCurl(request);
  const canCopy = !request.truncated.request_head;
  useShortcuts("This request", [
    ...(canReplay
      ? [
          { keys: ["r"], title: "Replay", act: replayUnchanged },
          { keys: ["e"], title: "Edit and replay", act: () => setEditing(true) },
        ]
      : []),
    ...(canCopy
      ? [{ keys: ["c"], title: "Copy as curl", act: () => void copyCommand().catch(notifyOfError) }]
      : []),
  ]);
  return (
    <>
      <div className="actions">
        {canReplay && (
          <>
            <Button
              kind={permission === "allowed" ? "primary" : "plain"}
              isBusy={isReplaying}
              disabled={isLoading}
              onClick={replayUnchanged}
            >
              {isReplaying ? "Replaying…" : "Replay"}
            </Button>
            <Button
              aria-expanded={isEditing}
              disabled={isLoading}
              onClick={() => setEditing(!isEditing)}
            >
              Edit and replay
            </Button>
          </>
        )}
        {permission === "off_for_tunnel" && <AllowReplaysButton tunnelId={request.tunnel_id} />}
        {canCopy && window.isSecureContext && (
          <ActionButton action={copyCommand}>Copy as curl</ActionButton>
        )}
        <ActionButton action={() => saveArchive(request)}>Download HAR</ActionButton>
        {permission === "off_on_server" && (
          <span className="hint">
            No replays: the server runs without <code>ALLOW_REPLAY=true</code>.
          </span>
        )}
      </div>
      {isEditing && canReplay && (
        <ReplayEditor request={request} onReplay={replay} onCancel={() => setEditing(false)} />
      )}
    </>
  );
}
