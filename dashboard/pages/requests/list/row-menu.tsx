/** The menu of one request in the list. */
import { useNavigate } from "@tanstack/react-router";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import { useHasRole } from "../../../app/roles.ts";
import { pressWhenShown } from "../../../app/shortcuts.ts";
import { formatFilterTerm } from "../../../inspector/filter-text.ts";
import { notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { AnchoredMenu, MenuItem, MenuSeparator } from "../../../ui/menu.tsx";
import { copyCurl, copyUrl, replayUnchanged, saveArchive } from "../copy-and-replay.ts";

interface RowMenuProps {
  capture: CaptureSummary | undefined;
  anchor: Element | null;
  /** undefined when the tunnel was deleted. */
  publicUrl: string | undefined;
  isBookmarked: boolean;
  isMarked: boolean;
  onOpen: (id: string) => void;
  onBookmark: () => void;
  onMark: () => void;
  /** Adds a term to the filter. */
  onFilter: (term: string) => void;
  onClose: () => void;
}

export function RowMenu({ capture, anchor, onClose, ...rest }: RowMenuProps) {
  return (
    <AnchoredMenu anchor={capture === undefined ? null : anchor} label="Actions" onClose={onClose}>
      {capture && <Items capture={capture} {...rest} />}
    </AnchoredMenu>
  );
}

type ItemsProps = Omit<RowMenuProps, "capture" | "anchor" | "onClose"> & {
  capture: CaptureSummary;
};

function Items(props: ItemsProps) {
  const { capture, publicUrl, onOpen, onFilter } = props;
  const navigate = useNavigate();
  const { id, tunnel_id: tunnelId, path, status, client_ip: ip } = capture;
  const isComplete = capture.request_head_missing !== true;
  const canReplay = useHasRole("member") && capture.kind !== "websocket" && isComplete;
  const run = (action: Promise<void>) => void action.catch(notifyOfError);

  function edit(): void {
    onOpen(id);
    pressWhenShown("This request", "e");
  }
  return (
    <>
      <MenuItem onClick={() => onOpen(id)}>Open</MenuItem>
      {canReplay && (
        <>
          <MenuItem onClick={() => run(replayUnchanged(capture, onOpen))}>Replay</MenuItem>
          <MenuItem onClick={() => edit()}>Edit and replay</MenuItem>
        </>
      )}
      {publicUrl !== undefined && window.isSecureContext && (
        <MenuItem onClick={() => run(copyUrl(capture, publicUrl))}>Copy URL</MenuItem>
      )}
      {isComplete && window.isSecureContext && (
        <MenuItem onClick={() => run(copyCurl(capture))}>Copy as curl</MenuItem>
      )}
      <MenuItem onClick={() => run(saveArchive(capture))}>Download HAR</MenuItem>
      <MenuSeparator />
      <MenuItem onClick={props.onBookmark}>
        {props.isBookmarked ? "Remove the bookmark" : "Bookmark"}
      </MenuItem>
      <MenuItem onClick={props.onMark}>
        {props.isMarked ? "Remove the mark" : "Mark for a diff"}
      </MenuItem>
      <MenuSeparator />
      <MenuItem onClick={() => onFilter(formatFilterTerm("path", path))}>
        Only requests with this path
      </MenuItem>
      <MenuItem onClick={() => onFilter(`-${formatFilterTerm("path", path)}`)}>
        Hide requests with this path
      </MenuItem>
      {status !== null && (
        <MenuItem onClick={() => onFilter(`status:${status}`)}>Only status {status}</MenuItem>
      )}
      <MenuItem onClick={() => onFilter(formatFilterTerm("ip", ip))}>Only from {ip}</MenuItem>
      {publicUrl !== undefined && (
        <>
          <MenuSeparator />
          <MenuItem
            onClick={() =>
              void navigate({
                to: "/tunnels/$id",
                params: { id: tunnelId },
                search: { tab: "policy", from: id },
              })
            }
          >
            Make a rule from this request…
          </MenuItem>
        </>
      )}
    </>
  );
}
