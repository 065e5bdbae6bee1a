/** The live list of requests with its filter, and the details of one request beside it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Suspense, useEffect, useRef, useState } from "react";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { capturedRequestQuery } from "../../api/captured-request.ts";
import { tunnelsQuery } from "../../api/tunnels.ts";
import { addTerm } from "../../inspector/filter-text.ts";
import { Button } from "../../ui/button.tsx";
import { ErrorBoundary } from "../../ui/feedback/error-boundary.tsx";
import { Skeleton } from "../../ui/feedback/skeleton.tsx";
import { Icon } from "../../ui/icon.tsx";
import { useIsWide } from "../../ui/layout/media-query.ts";
import { Splitter, useStoredPercent } from "../../ui/layout/splitter.tsx";
import { formatCount } from "../../ui/numbers.ts";
import { createPreloadable } from "../../ui/preloadable.tsx";
import { ListFooter } from "./list/list-footer.tsx";
import { MarkedBar, useMarks } from "./list/marks.tsx";
import { RequestList } from "./list/request-list.tsx";
import { RowMenu } from "./list/row-menu.tsx";
import { useInspectorKeys } from "./list/use-inspector-keys.ts";
import {
  useRequestView,
  type InspectorParameters,
  type SetParameters,
} from "./list/use-request-view.ts";
import { Toolbar } from "./filter/toolbar.tsx";
import { useBodySearch } from "./filter/use-body-search.ts";
import "./requests.css";

const LIST_WIDTH_KEY = "underpass-inspector-list-width";
const LIST_WIDTH_PERCENT = 40;

const { Component: Detail, usePreload } = createPreloadable(async () => {
  const { RequestDetail } = await import("./detail/request-detail.tsx");
  return RequestDetail;
});

interface InspectorProps {
  parameters: InspectorParameters;
  setParameters: SetParameters;
  /** The keys belong to the page behind, except while the focus is in the inspector. */
  isDocked?: boolean;
}

export function Inspector({ parameters, setParameters, isDocked = false }: InspectorProps) {
  const { filter = "", tunnel_id: tunnelId } = parameters;
  const bodySearch = useBodySearch();
  const { store, view, bookmarks, filterError } = useRequestView(parameters, bodySearch.foundIds);
  const { data: tunnels } = useQuery(tunnelsQuery);
  const details = useDetails({ parameters, setParameters, isDocked });
  const root = useRef<HTMLDivElement>(null);
  const [activeId, setActiveId] = useState(parameters.selected);
  const marks = useMarks();
  const [menu, setMenu] = useState<{ id: string; anchor: Element }>();
  const [percent, setPercent] = useStoredPercent(LIST_WIDTH_KEY, LIST_WIDTH_PERCENT);

  function open(id: string): void {
    setActiveId(id);
    details.open(id);
  }

  function close(): void {
    setParameters({ selected: "" });
    focusList();
  }

  function focusList(): void {
    root.current?.querySelector<HTMLElement>("[role=grid]")?.focus();
  }

  const getCapture = (id: string | undefined) =>
    id === undefined ? undefined : (store.newest.get(id) ?? view.getRow(view.findIndex(id)));
  useInspectorKeys({
    root,
    isDocked,
    view,
    activeId,
    isDetailOpen: details.shownId !== undefined,
    onActivate: setActiveId,
    onOpen: open,
    onClose: close,
    onMark: marks.toggle,
    onDiff: marks.showDiff,
    onBookmark: (capture) => bookmarks.toggle(capture),
    onFocusFilter: () => root.current?.querySelector<HTMLElement>("[data-filter]")?.focus(),
    onOpenMenu(id) {
      const anchor = root.current?.querySelector(`[data-menu="${id}"]`);
      if (anchor) setMenu({ id, anchor });
    },
  });

  const httpTunnels = tunnels?.filter(({ protocol }) => protocol !== "tcp");
  const tunnelNames = tunnelId === undefined ? nameTunnels(httpTunnels ?? []) : undefined;
  const menuCapture = getCapture(menu?.id);
  return (
    <div className="inspector" ref={root}>
      <Toolbar
        parameters={parameters}
        setParameters={setParameters}
        view={view}
        store={store}
        tunnels={httpTunnels}
        filterError={filterError}
        bodySearch={bodySearch}
        onLeaveFilter={focusList}
      />
      <MarkedBar marks={marks} />
      <div className="panels">
        <div className="list-panel" style={{ width: details.shownId ? `${percent}%` : "100%" }}>
          {view.newCount > 0 && view.state !== "following" && (
            <Button kind="primary" className="new-requests" onClick={() => view.follow()}>
              {formatCount(view.newCount)} new
            </Button>
          )}
          <RequestList
            view={view}
            bookmarks={bookmarks}
            tunnelNames={tunnelNames}
            activeId={activeId}
            selectedId={parameters.selected}
            markedIds={marks.ids}
            onActivate={setActiveId}
            onOpen={open}
            onOpenMenu={(id, anchor) => setMenu({ id, anchor })}
            footer={
              <ListFooter
                view={view}
                store={store}
                parameters={parameters}
                setParameters={setParameters}
                bodySearch={bodySearch}
              />
            }
          />
        </div>
        {details.shownId !== undefined && (
          <>
            <Splitter
              label="Width of the list"
              orientation="vertical"
              percent={percent}
              onMove={setPercent}
            />
            <DetailPanel id={details.shownId} onClose={close} />
          </>
        )}
      </div>
      <RowMenu
        capture={menuCapture}
        anchor={menu?.anchor ?? null}
        publicUrl={tunnels?.find(({ id }) => id === menuCapture?.tunnel_id)?.publicUrl}
        isBookmarked={menu !== undefined && bookmarks.has(menu.id)}
        isMarked={menu !== undefined && marks.ids.includes(menu.id)}
        onOpen={open}
        onBookmark={() => menuCapture && bookmarks.toggle(menuCapture)}
        onMark={() => menu && marks.toggle(menu.id)}
        onFilter={(term) => setParameters({ filter: addTerm(filter, term) })}
        onClose={() => setMenu(undefined)}
      />
    </div>
  );
}

/** The details of a request are beside the list on a wide screen, and a page of their own on others. */
function useDetails({ parameters: { selected }, setParameters, isDocked }: InspectorProps) {
  const navigate = useNavigate();
  const isWide = useIsWide();
  const queries = useQueryClient();
  usePreload();
  // A link that was shared from a wide screen.
  useEffect(() => {
    if (isWide || isDocked || selected === undefined) return;
    void navigate({ to: "/requests/$id", params: { id: selected }, replace: true });
  }, [isWide, isDocked, selected, navigate]);

  function open(id: string): void {
    void queries.prefetchQuery(capturedRequestQuery(id));
    if (isWide) setParameters({ selected: id });
    else void navigate({ to: "/requests/$id", params: { id } });
  }
  return { shownId: isWide ? selected : undefined, open };
}

/** @returns the names by id; undefined when the list is about a single tunnel. */
function nameTunnels(tunnels: readonly Tunnel[]): ReadonlyMap<string, string> | undefined {
  if (tunnels.length <= 1) return undefined;
  return new Map(tunnels.map(({ id, name, subdomain }) => [id, name || subdomain]));
}

function DetailPanel({ id, onClose }: { id: string; onClose: () => void }) {
  return (
    <section className="detail-panel" aria-label="Details of the request">
      <Button kind="quiet" className="close-detail" aria-label="Close" onClick={onClose}>
        <Icon name="close" />
      </Button>
      <ErrorBoundary key={id}>
        <Suspense fallback={<Skeleton lines={8} />}>
          <Detail id={id} isCompact />
        </Suspense>
      </ErrorBoundary>
    </section>
  );
}
