/** The list of requests as a store for React. */
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import {
  CaptureFilterError,
  parseCaptureFilter,
  type CaptureExpression,
} from "../../../../protocol/captures/filter.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import { useMe } from "../../../app/session-state.ts";
import { Bookmarks, getBookmarks } from "../../../inspector/bookmarks.ts";
import type { CaptureStore } from "../../../inspector/capture-store.ts";
import { getCaptureStore } from "../../../inspector/current-store.ts";
import { listCaptures } from "../../../inspector/list-captures.ts";
import { RequestView } from "../../../inspector/request-view.ts";

/** The selection of the list: parameters of the URL of the page, or the state of the dock. */
export interface InspectorParameters {
  filter?: string;
  tunnel_id?: string;
  /** The request whose details are shown. */
  selected?: string;
  /** `1`: only bookmarked requests. */
  bookmarked?: string;
  /** A text to search in bodies. */
  body?: string;
}

export type SetParameters = (changes: InspectorParameters) => void;

interface RequestViewState {
  store: CaptureStore;
  view: RequestView;
  bookmarks: Bookmarks;
  /** Why the filter is not valid. The list then still shows the result of the last valid one. */
  filterError: string | undefined;
}

/** @param foundIds the requests whose bodies contain the text; undefined without such a search. */
export function useRequestView(
  { filter = "", tunnel_id: tunnelId, bookmarked }: InspectorParameters,
  foundIds: ReadonlySet<string> | undefined,
): RequestViewState {
  const { user, active_org: organization } = useMe();
  const store = getCaptureStore(`${user.id} ${organization.id}`);
  const bookmarks = getBookmarks(organization.id);
  const saved = useSyncExternalStore(bookmarks.subscribe, bookmarks.getAll);
  const only = bookmarked === "1" ? saved : undefined;
  const [view] = useState(
    () =>
      new RequestView({
        store,
        list: listCaptures,
        schedule: (update) => requestAnimationFrame(update),
        now: () => performance.now(),
      }),
  );
  const { expression, error } = useMemo(() => parseFilter(filter), [filter]);
  useEffect(() => view.connect(), [view]);
  useEffect(() => {
    if (expression === undefined) return;
    const matches = (capture: CaptureSummary) =>
      (tunnelId === undefined || capture.tunnel_id === tunnelId) && expression.matches(capture);
    const query = { ...expression.query, ...(tunnelId !== undefined && { tunnel_id: tunnelId }) };
    view.select({ matches, query, only, foundIds });
  }, [view, expression, tunnelId, foundIds, only]);
  useSyncExternalStore(view.subscribe, view.getVersion);
  return { store, view, bookmarks, filterError: error };
}

function parseFilter(text: string): { expression?: CaptureExpression; error?: string } {
  try {
    return { expression: parseCaptureFilter(text) };
  } catch (error) {
    if (!(error instanceof CaptureFilterError)) throw error;
    return { error: error.message };
  }
}
