import type { Route } from "../rpc.ts";

/** Versions decide: a read that started before a change must not overwrite what the change published. */
export function newerRoute(known: Route | undefined, offered: Route): Route {
  return known !== undefined && known.version >= offered.version ? known : offered;
}
