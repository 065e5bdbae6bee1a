/** Above the list: the filter, how many requests match, and what can be done with the list. */
import { useState } from "react";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import type { CaptureStore } from "../../../inspector/capture-store.ts";
import type { RequestView } from "../../../inspector/request-view.ts";
import { Button } from "../../../ui/button.tsx";
import { notify } from "../../../ui/feedback/notifications.tsx";
import { TunnelChoice } from "../../../ui/forms/tunnel-choice.tsx";
import { formatCount, formatQuantity } from "../../../ui/numbers.ts";
import type { InspectorParameters, SetParameters } from "../list/use-request-view.ts";
import { BodySearchBar } from "./body-search-bar.tsx";
import { DownloadButton } from "./download-button.tsx";
import { FilterChips } from "./filter-chips.tsx";
import { FilterInput } from "./filter-input.tsx";
import type { BodySearch } from "./use-body-search.ts";

/** The filter suggests values of this many requests of the list. */
const SUGGESTED_FROM_ROWS = 1_000;

interface ToolbarProps {
  parameters: InspectorParameters;
  setParameters: SetParameters;
  view: RequestView;
  store: CaptureStore;
  /** undefined while they are loaded. */
  tunnels: readonly Tunnel[] | undefined;
  filterError: string | undefined;
  bodySearch: BodySearch;
  onLeaveFilter: () => void;
}

export function Toolbar(props: ToolbarProps) {
  const { parameters, setParameters, view, store, tunnels, bodySearch } = props;
  const { filter = "", tunnel_id: tunnelId = "", bookmarked, body } = parameters;
  const [isSearchOpen, setSearchOpen] = useState(body !== undefined);
  const isPaused = view.state === "paused";

  function clear(): void {
    view.clear();
    view.follow();
    const act = () => view.undoClear();
    notify("The list was cleared. The requests are still stored.", { label: "Show them", act });
  }

  function closeSearch(): void {
    setSearchOpen(false);
    bodySearch.clear();
    setParameters({ body: "" });
  }
  return (
    <div className="inspector-toolbar">
      <div className="toolbar-row">
        <FilterInput
          filter={filter}
          error={props.filterError}
          onChange={(next) => setParameters({ filter: next })}
          onLeave={props.onLeaveFilter}
          getRows={() => view.getFiltered(SUGGESTED_FROM_ROWS)}
        />
        {(tunnels?.length !== 0 || tunnelId !== "") && (
          <TunnelChoice
            tunnels={tunnels ?? []}
            tunnelId={tunnelId}
            onChoose={(id) => setParameters({ tunnel_id: id })}
          />
        )}
      </div>
      <div className="toolbar-row filter-chips">
        <FilterChips filter={filter} onChange={(next) => setParameters({ filter: next })} />
      </div>
      <div className="toolbar-row">
        <Counts view={view} store={store} />
        <span className="spring" />
        <div className="chips">
          <button
            type="button"
            className="chip"
            aria-pressed={bookmarked === "1"}
            onClick={() => setParameters({ bookmarked: bookmarked === "1" ? "" : "1" })}
          >
            ★ Bookmarked
          </button>
          <button
            type="button"
            className="chip"
            aria-expanded={isSearchOpen}
            onClick={() => (isSearchOpen ? closeSearch() : setSearchOpen(true))}
          >
            Search in bodies
          </button>
        </div>
        <div className="toolbar-buttons">
          <Button
            kind="quiet"
            aria-pressed={isPaused}
            onClick={() => (isPaused ? view.follow() : view.freeze("paused"))}
          >
            {isPaused ? "Resume" : "Pause"}
          </Button>
          <Button kind="quiet" onClick={clear}>
            Clear
          </Button>
          <DownloadButton filter={filter} tunnelId={tunnelId} view={view} />
        </div>
      </div>
      {isSearchOpen && (
        <BodySearchBar
          text={body ?? ""}
          search={bodySearch}
          view={view}
          isReady={store.status !== "loading" && !view.isFiltering}
          onSearch={(text) => setParameters({ body: text })}
          onClose={closeSearch}
        />
      )}
    </div>
  );
}

/** Whether new requests arrive, and how many of the loaded ones match. */
function Counts({ view, store }: { view: RequestView; store: CaptureStore }) {
  const isLive = store.status === "live" && view.state === "following";
  return (
    <span className="counts hint">
      <span className={`live-dot ${isLive ? "live" : ""}`} />
      {formatListState(view, store)} · {view.isFiltering ? "filtering…" : formatCounts(view)}
    </span>
  );
}

function formatListState(view: RequestView, { status }: CaptureStore): string {
  if (status === "loading") return "Loading";
  if (status === "connecting") return "Connecting";
  if (status === "reconnecting") return "Reconnecting";
  if (view.state === "paused") return "Paused";
  return view.state === "reading" ? "Not following" : "Live";
}

function formatCounts({ count, newCount, searchedCount, hasOlder }: RequestView): string {
  if (newCount > 0) return `${formatCount(newCount)} new`;
  const newest = hasOlder ? "newest " : "";
  if (count === searchedCount) return newest + formatQuantity(count, "request");
  return `${formatCount(count)} of ${hasOlder ? "the " : ""}${newest}${formatCount(searchedCount)}`;
}
