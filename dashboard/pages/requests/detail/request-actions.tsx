/** What can be done with a captured request: replay it, copy it as a command, save it. */
import { useState } from "react";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import type {
  ReplayRequest,
  ReplayResult,
} from "../../../../protocol/schemas/inspector/replays.ts";
import { RequestError } from "../../../api/request.ts";
import { call } from "../../../api/session.ts";
import { useMe } from "../../../app/session-state.ts";
import { useShortcuts } from "../../../app/shortcuts.ts";
import { ActionButton, Button } from "../../../ui/button.tsx";
import { notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { downloadFile } from "../../../ui/text/download.ts";
import { copyCurl } from "../copy-and-replay.ts";
import { ReplayDisabledNotice } from "./replay/replay-disabled-notice.tsx";
import { ReplayEditor } from "./replay/replay-editor.tsx";

export interface RequestActionsProps {
  request: CaptureDetail;
  onReplayed: (result: ReplayResult) => void;
}

export function RequestActions({ request, onReplayed }: RequestActionsProps) {
  const { role } = useMe().active_org;
  const [isEditing, setEditing] = useState(false);
  const [isReplaying, setReplaying] = useState(false);
  const [isDisabled, setDisabled] = useState(false);
  const canReplay = role !== "viewer" && request.kind !== "websocket";

  /** @throws RequestError unless replays are switched off, which a notice explains. */
  async function replay(changes?: ReplayRequest): Promise<void> {
    setDisabled(false);
    setReplaying(true);
    try {
      onReplayed(await call<ReplayResult>("POST", `/inspector/${request.id}/replay`, changes));
      setEditing(false);
    } catch (error) {
      if (!(error instanceof RequestError) || error.code !== "replay_disabled") throw error;
      setDisabled(true);
    } finally {
      setReplaying(false);
    }
  }
  const replayUnchanged = () => void replay().catch(notifyOfError);
  const copyCommand = () => copyCurl(request);
  useShortcuts("This request", [
    ...(canReplay
      ? [
          { keys: ["r"], title: "Replay", act: replayUnchanged },
          { keys: ["e"], title: "Edit and replay", act: () => setEditing(true) },
        ]
      : []),
    { keys: ["c"], title: "Copy as curl", act: () => void copyCommand().catch(notifyOfError) },
  ]);
  return (
    <>
      <div className="actions">
        {canReplay && (
          <>
            <Button kind="primary" isBusy={isReplaying} onClick={replayUnchanged}>
              {isReplaying ? "Replaying…" : "Replay"}
            </Button>
            <Button aria-expanded={isEditing} onClick={() => setEditing(!isEditing)}>
              Edit and replay
            </Button>
          </>
        )}
        {window.isSecureContext && <ActionButton action={copyCommand}>Copy as curl</ActionButton>}
        <ActionButton action={() => saveArchive(request)}>Download HAR</ActionButton>
      </div>
      {isDisabled && <ReplayDisabledNotice tunnelId={request.tunnel_id} />}
      {isEditing && (
        <ReplayEditor request={request} onReplay={replay} onCancel={() => setEditing(false)} />
      )}
    </>
  );
}

async function saveArchive({ id }: CaptureDetail): Promise<void> {
  const archive = await call<unknown>("GET", `/inspector/${id}/har`);
  downloadFile(`${id}.har`, JSON.stringify(archive));
}
