/** The keyboard shortcuts of the list of requests. */
import type { RefObject } from "react";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import { useHasRole } from "../../../app/roles.ts";
import { pressWhenShown, useShortcuts, type Shortcut } from "../../../app/shortcuts.ts";
import type { RequestView } from "../../../inspector/request-view.ts";
import { notify, notifyOfError } from "../../../ui/feedback/notifications.tsx";
import { copyCurl, replayUnchanged } from "../copy-and-replay.ts";

const PAGE_ROWS = 15;

const NOT_REPLAYABLE = "The headers of this request were not stored: it can't be replayed.";
const NOT_COPYABLE = "The headers of this request were not stored: it can't be copied as curl.";

/** While the focus is in the details, these keys scroll them or belong to the focused control. */
const LIST_KEYS = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End", "Enter"];

interface InspectorKeys {
  root: RefObject<HTMLElement | null>;
  isDocked: boolean;
  view: RequestView;
  activeId: string | undefined;
  isDetailOpen: boolean;
  onActivate: (id: string) => void;
  onOpen: (id: string) => void;
  onClose: () => void;
  onMark: (id: string) => void;
  onDiff: () => void;
  onBookmark: (capture: CaptureSummary) => void;
  onFocusFilter: () => void;
  onOpenMenu: (id: string) => void;
}

export function useInspectorKeys(keys: InspectorKeys): void {
  const { root, view, activeId, isDetailOpen } = keys;
  const canReplay = useHasRole("member");

  function activate(index: number): void {
    const row = view.getRow(Math.max(0, Math.min(index, view.count - 1)));
    if (row === undefined) return;
    // New requests would move the active row away.
    if (view.state === "following") view.freeze("reading");
    keys.onActivate(row.id);
    if (isDetailOpen) keys.onOpen(row.id);
  }

  function move(rows: number): void {
    const index = activeId === undefined ? -1 : view.findIndex(activeId);
    activate(index < 0 ? 0 : index + rows);
  }

  /** Acts on the active row, or on the first row if the filter has removed the active one. */
  function withActive(act: (capture: CaptureSummary) => unknown): () => void {
    return () => {
      const index = activeId === undefined ? -1 : view.findIndex(activeId);
      const capture = view.getRow(Math.max(0, index));
      if (capture === undefined) return;
      keys.onActivate(capture.id);
      void Promise.resolve(act(capture)).catch(notifyOfError);
    };
  }

  /** Like `withActive`, for an action that needs the request's headers. @param notice if they were not stored. */
  function withHeaders(notice: string, act: (capture: CaptureSummary) => unknown): () => void {
    return withActive((capture) =>
      capture.request_head_missing === true ? notify(notice) : act(capture),
    );
  }

  function isEnabled(key: string): boolean {
    const focused = document.activeElement;
    const isInDetail = (focused?.closest(".detail-panel") ?? null) !== null;
    if (isInDetail && LIST_KEYS.includes(key)) return false;
    return !keys.isDocked || root.current?.contains(focused) === true;
  }
  const shortcuts: (Shortcut | false)[] = [
    { keys: ["j", "ArrowDown"], title: "Next request", act: () => move(1) },
    { keys: ["k", "ArrowUp"], title: "Previous request", act: () => move(-1) },
    { keys: ["PageDown"], title: "One page down", act: () => move(PAGE_ROWS) },
    { keys: ["PageUp"], title: "One page up", act: () => move(-PAGE_ROWS) },
    {
      keys: ["Home"],
      title: "Newest request, and follow",
      act: () => (activate(0), view.follow()),
    },
    { keys: ["End"], title: "Oldest listed request", act: () => activate(view.count - 1) },
    { keys: ["Enter"], title: "Open the request", act: withActive(({ id }) => keys.onOpen(id)) },
    isDetailOpen && { keys: ["Escape"], title: "Close the details", act: keys.onClose },
    { keys: ["/"], title: "Filter the requests", act: keys.onFocusFilter },
    { keys: ["x"], title: "Mark for a diff", act: withActive(({ id }) => keys.onMark(id)) },
    { keys: ["d"], title: "Show the diff of two marked requests", act: keys.onDiff },
    { keys: ["b"], title: "Bookmark", act: withActive(keys.onBookmark) },
    canReplay && {
      keys: ["r"],
      title: "Replay",
      act: withHeaders(NOT_REPLAYABLE, (capture) => replayUnchanged(capture, keys.onOpen)),
    },
    canReplay && {
      keys: ["e"],
      title: "Edit and replay",
      act: withHeaders(NOT_REPLAYABLE, ({ id }) => {
        keys.onOpen(id);
        pressWhenShown("This request", "e");
      }),
    },
    { keys: ["c"], title: "Copy as curl", act: withHeaders(NOT_COPYABLE, copyCurl) },
    { keys: ["m"], title: "Open the menu", act: withActive(({ id }) => keys.onOpenMenu(id)) },
    {
      keys: ["p"],
      title: "Pause or resume",
      act: () => (view.state === "paused" ? view.follow() : view.freeze("paused")),
    },
  ];
  useShortcuts(
    "Requests",
    shortcuts.filter((each) => each !== false).map((each) => ({ ...each, isEnabled })),
  );
}
