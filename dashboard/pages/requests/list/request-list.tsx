/** The requests as a grid. Only visible rows are in the document, so the grid has the focus and knows the active row. */
import { useVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import {
  useEffect,
  useId,
  useRef,
  type FocusEvent,
  type MouseEvent,
  type PointerEvent,
  type ReactNode,
} from "react";
import type { Bookmarks } from "../../../inspector/bookmarks.ts";
import type { RequestView } from "../../../inspector/request-view.ts";
import { useIsNarrow } from "../../../ui/layout/media-query.ts";
import { RequestRow } from "./request-row.tsx";

/** As in requests.css. */
const ROW_PX = 32;
/** Large enough for a finger. */
const NARROW_ROW_PX = 44;
/** Scrolled further down than this, the user reads older requests, and the list stops following new ones. */
const TOP_PX = 8;
const OVERSCAN_ROWS = 6;

interface RequestListProps {
  view: RequestView;
  bookmarks: Bookmarks;
  /** The names of tunnels by their ids; undefined when the list is about a single tunnel. */
  tunnelNames: ReadonlyMap<string, string> | undefined;
  activeId: string | undefined;
  selectedId: string | undefined;
  markedIds: readonly string[];
  onActivate: (id: string) => void;
  onOpen: (id: string) => void;
  /** @param anchor where the menu of the row appears. */
  onOpenMenu: (id: string, anchor: Element) => void;
  /** Below the last row. */
  footer: ReactNode;
}

export function RequestList(props: RequestListProps) {
  const { view, tunnelNames, activeId, footer } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const domId = useId();
  const rowPx = useIsNarrow() ? NARROW_ROW_PX : ROW_PX;
  const virtualizer = useVirtualizer({
    count: view.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: OVERSCAN_ROWS,
    useFlushSync: false,
  });
  useEffect(() => virtualizer.measure(), [virtualizer, rowPx]);

  const activeIndex = activeId === undefined ? -1 : view.findIndex(activeId);
  useEffect(() => {
    const index = activeId === undefined ? -1 : view.findIndex(activeId);
    if (index >= 0) virtualizer.scrollToIndex(index, { align: "auto" });
  }, [activeId, view, virtualizer]);
  useEffect(() => {
    if (view.state === "following") scroller.current?.scrollTo({ top: 0 });
  }, [view, view.state]);

  function handleScroll(): void {
    const { scrollTop } = scroller.current!;
    if (scrollTop > TOP_PX && view.state === "following") view.freeze("reading");
    if (scrollTop === 0 && view.state === "reading") view.follow();
  }

  function handleFocus({ currentTarget }: FocusEvent): void {
    const first = view.getRow(Math.ceil(scroller.current!.scrollTop / rowPx));
    // A click activates the row that it is on.
    if (!currentTarget.matches(":focus-visible") || activeIndex >= 0 || !first) return;
    props.onActivate(first.id);
  }

  const items = virtualizer.getVirtualItems();
  const isActiveShown = items.some(({ index }) => index === activeIndex);
  return (
    <div
      ref={scroller}
      className={`request-list${tunnelNames ? " with-tunnels" : ""}`}
      onScroll={handleScroll}
    >
      <div
        role="grid"
        aria-label="Requests"
        aria-rowcount={view.count + 1}
        aria-activedescendant={isActiveShown ? `${domId}${activeId}` : undefined}
        tabIndex={0}
        onFocus={handleFocus}
        {...createPointerHandlers(props)}
      >
        <RequestHeader hasTunnels={tunnelNames !== undefined} />
        <div
          role="rowgroup"
          className="request-rows"
          style={{ height: virtualizer.getTotalSize() }}
        >
          <RequestRows list={props} items={items} domId={domId} />
        </div>
      </div>
      {footer}
    </div>
  );
}

/** What the pointer does to the row that it is on. */
function createPointerHandlers({ view, onOpen, onOpenMenu }: RequestListProps) {
  return {
    /** New requests would move the row away before the pointer is released, and while its details are read. */
    onPointerDown({ target }: PointerEvent) {
      if (view.state !== "following" || findRowId(target as Element) === null) return;
      view.freeze("reading");
    },
    onClick(event: MouseEvent) {
      const target = event.target as Element;
      const menuId = target.getAttribute("data-menu");
      const id = findRowId(target);
      if (menuId !== null) onOpenMenu(menuId, target);
      else if (id !== null) onOpen(id);
    },
    onContextMenu(event: MouseEvent) {
      const id = findRowId(event.target as Element);
      const button = event.currentTarget.querySelector(`[data-menu="${id}"]`);
      if (id === null || button === null) return;
      event.preventDefault();
      onOpenMenu(id, button);
    },
  };
}

interface RequestRowsProps {
  list: RequestListProps;
  /** The rows in view. */
  items: readonly VirtualItem[];
  /** The beginning of the ids of their elements. */
  domId: string;
}

function RequestRows({ list, items, domId }: RequestRowsProps) {
  const { view, bookmarks, tunnelNames, activeId, selectedId, markedIds } = list;
  return items.map(({ index, start }) => {
    const capture = view.getRow(index);
    if (capture === undefined) return null;
    const { id, tunnel_id: tunnelId } = capture;
    return (
      <RequestRow
        key={id}
        domId={`${domId}${id}`}
        capture={capture}
        index={index}
        topPx={start}
        tunnelName={tunnelNames && (tunnelNames.get(tunnelId) ?? "deleted")}
        isActive={id === activeId}
        isSelected={id === selectedId}
        isMarked={markedIds.includes(id)}
        isBookmarked={bookmarks.has(id)}
      />
    );
  });
}

function RequestHeader({ hasTunnels }: { hasTunnels: boolean }) {
  return (
    <div role="rowgroup" className="request-header">
      <div role="row" aria-rowindex={1}>
        {getColumns(hasTunnels).map(([name, title]) => (
          <span key={name} role="columnheader" className={name}>
            {name === "row-actions" ? <span className="hidden-text">{title}</span> : title}
          </span>
        ))}
      </div>
    </div>
  );
}

function findRowId(target: Element): string | null {
  return target.closest("[data-id]")?.getAttribute("data-id") ?? null;
}

function getColumns(hasTunnels: boolean): [className: string, title: string][] {
  return [
    ["method", "Method"],
    ["status", "Status"],
    ["path", "Path"],
    ...(hasTunnels ? ([["tunnel", "Tunnel"]] as [string, string][]) : []),
    ["time", "Time"],
    ["quantity", "Duration"],
    ["quantity size", "Size"],
    ["row-actions", "Actions"],
  ];
}
