/** The token of an invitation, stored for this tab: signing in can lead to a provider's pages and back. */
import { readStored, writeStored } from "../api/browser-storage.ts";

const STORAGE_KEY = "underpass-invitation";

export function readInvitation(): string | null {
  return readStored("sessionStorage", STORAGE_KEY);
}

export function writeInvitation(token: string | null): void {
  writeStored("sessionStorage", STORAGE_KEY, token);
}
