/** The filter of the list of requests while one of them is shown on a page of its own, whose link leads back to the list. */
import { useEffect } from "react";
import { useMe } from "../../../app/session-state.ts";
import type { InspectorParameters } from "./use-request-view.ts";

/** By the id of the organization, because a filter can name a tunnel. */
const remembered = new Map<string, InspectorParameters>();

/** Remembers the filter that is shown. */
export function useRememberedList(parameters: InspectorParameters): void {
  const { selected: _, ...filter } = parameters;
  const { id } = useMe().active_org;
  useEffect(() => {
    remembered.set(id, filter);
  });
}

/** The filter that was shown last; none at first. */
export function useLastFilter(): InspectorParameters {
  return remembered.get(useMe().active_org.id) ?? {};
}
