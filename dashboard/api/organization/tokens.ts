/** The capability tokens of the organization. */
import { queryOptions } from "@tanstack/react-query";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { getListReloadMs, loadList } from "../lists.ts";

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: ({ signal }) => loadList<Token>("/tokens", signal),
  refetchInterval: ({ state }) => getListReloadMs(state.data),
});

/** Neither revoked nor expired. */
export function isValidToken({ revoked, expiresAt }: Token): boolean {
  return !revoked && expiresAt * 1000 > Date.now();
}
