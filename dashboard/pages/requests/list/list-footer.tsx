/** The end of the list: older requests, or why there are none. */
import { useEffect, useRef } from "react";
import { isNotFound } from "../../../api/request.ts";
import type { CaptureStore } from "../../../inspector/capture-store.ts";
import type { RequestView } from "../../../inspector/request-view.ts";
import { Button } from "../../../ui/button.tsx";
import { ErrorNotice } from "../../../ui/feedback/error-notice.tsx";
import { FirstTunnel } from "../../../ui/feedback/first-tunnel.tsx";
import { MissingResource } from "../../../ui/feedback/missing-resource.tsx";
import { Skeleton } from "../../../ui/feedback/skeleton.tsx";
import { formatCount } from "../../../ui/numbers.ts";
import type { BodySearch, SearchProgress } from "../filter/use-body-search.ts";
import type { InspectorParameters, SetParameters } from "./use-request-view.ts";

/** After this many requests without a match, the user is asked whether to search older ones. */
const SEARCHED_WITHOUT_MATCH_MAX = 2_000;

interface ListFooterProps {
  view: RequestView;
  store: CaptureStore;
  parameters: InspectorParameters;
  setParameters: SetParameters;
  bodySearch: BodySearch;
}

export function ListFooter(props: ListFooterProps) {
  const { view, store, parameters, setParameters, bodySearch } = props;
  const { filter, tunnel_id: tunnelId, bookmarked, body } = parameters;
  const isFiltered = [filter, tunnelId, bookmarked, body].some((value) => value !== undefined);
  if (store.status === "loading" && store.error !== undefined) {
    return <ErrorNotice error={store.error} onRetry={() => store.catchUp()} />;
  }
  if (store.status === "loading") return <Skeleton lines={8} />;
  if (tunnelId !== undefined && isNotFound(view.olderError)) {
    return (
      <MissingResource id={tunnelId} kind="tunnel" title="This tunnel does not exist">
        <p>It may have been deleted, and its captured requests with it.</p>
        <Button onClick={() => setParameters({ tunnel_id: "" })}>Show all tunnels</Button>
      </MissingResource>
    );
  }
  if (view.olderError !== undefined) {
    return <ErrorNotice error={view.olderError} onRetry={() => void view.loadOlder()} />;
  }
  if (view.hasOlder) return <OlderRequests view={view} />;
  if (view.count > 0) return null;
  if (view.isCleared) return <p className="list-note hint">New requests appear here.</p>;
  if (bodySearch.progress !== undefined) return <BodySearchNote {...bodySearch.progress} />;
  if (bookmarked === "1") {
    return (
      <p className="list-note hint">
        No bookmarked request matches. Bookmark requests with <kbd>b</kbd> to find them here again,
        and to replay them as test events.
      </p>
    );
  }
  if (isFiltered) {
    const clear = () => setParameters({ filter: "", tunnel_id: "", bookmarked: "", body: "" });
    return (
      <div className="list-note hint">
        No request matches the filter.{" "}
        <Button kind="link" onClick={clear}>
          Clear the filter
        </Button>
      </div>
    );
  }
  return (
    <FirstTunnel title="No requests yet">
      Requests to the URL of a tunnel appear here at once.
    </FirstTunnel>
  );
}

function BodySearchNote({ isRunning, searched, total }: SearchProgress) {
  if (isRunning) return <p className="list-note hint">Searching…</p>;
  return (
    <p className="list-note hint">
      {searched < total
        ? "No body that was searched contains this text."
        : "No body contains this text."}
    </p>
  );
}

/** Loads older requests when it is scrolled into view. */
function OlderRequests({ view }: { view: RequestView }) {
  const element = useRef<HTMLDivElement>(null);
  const canLoad = view.count > 0 || view.searchedCount < SEARCHED_WITHOUT_MATCH_MAX;
  useEffect(() => {
    if (!canLoad || view.isLoadingOlder) return undefined;
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) void view.loadOlder();
    });
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, [view, canLoad, view.isLoadingOlder, view.count]);
  return (
    <div className="list-note hint" ref={element}>
      {view.isLoadingOlder ? (
        "Loading older requests…"
      ) : (
        <Button kind="link" onClick={() => void view.loadOlder()}>
          {view.count === 0
            ? `None of the newest ${formatCount(view.searchedCount)} matches. Search older ones`
            : "Load older requests"}
        </Button>
      )}
    </div>
  );
}
