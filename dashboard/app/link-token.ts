/** The token of the mailed link that opened this page. It is in memory only, so that it stays out of the history. */
import { createContext, useContext } from "react";

export const LinkToken = createContext<string | null>(null);

export function useLinkToken(): string | null {
  return useContext(LinkToken);
}
