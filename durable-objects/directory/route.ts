import type { Route } from "../rpc.ts";

/** Versions decide: a read that started before a change must not overwrite the published change. */
export function newerRoute(stored: Route | undefined, offered: Route): Route {
  return stored !== undefined && stored.version >= offered.version ? stored : offered;
}
