/**
 * Requests that the user has bookmarked, such as test events to replay. They are stored in this browser for each organization,
 * with what the list shows of them.
 */
import { LISTED_PATH_MAX_CHARS } from "../../protocol/limits.ts";
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { readStored, writeStored } from "../api/browser-storage.ts";

/** Beyond these, the oldest bookmark is removed. */
const BOOKMARKS_MAX = 200;

export class Bookmarks {
  readonly #storageKey: string;
  /** The newest bookmark first. */
  #captures: readonly CaptureSummary[];
  readonly #listeners = new Set<() => void>();

  constructor(organizationId: string) {
    this.#storageKey = `underpass-bookmarks ${organizationId}`;
    this.#captures = this.#readStored();
  }

  /** For `useSyncExternalStore`. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly getAll = (): readonly CaptureSummary[] => this.#captures;

  has(id: string): boolean {
    return this.#captures.some((capture) => capture.id === id);
  }

  /** @returns whether the request is bookmarked now. */
  toggle(capture: CaptureSummary): boolean {
    const isAdded = !this.has(capture.id);
    // Another tab may have added some meanwhile.
    const others = this.#readStored().filter(({ id }) => id !== capture.id);
    // As in lists, so that the bookmarks fit into the storage of the browser.
    const added = { ...capture, path: capture.path.slice(0, LISTED_PATH_MAX_CHARS) };
    this.#captures = isAdded ? [added, ...others].slice(0, BOOKMARKS_MAX) : others;
    writeStored("localStorage", this.#storageKey, JSON.stringify(this.#captures));
    for (const notify of this.#listeners) notify();
    return isAdded;
  }

  #readStored(): CaptureSummary[] {
    return parseBookmarks(readStored("localStorage", this.#storageKey));
  }
}

/** The user, or an earlier version, may have stored something else. */
function parseBookmarks(text: string | null): CaptureSummary[] {
  try {
    const stored: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(stored) ? stored.filter(isCapture).slice(0, BOOKMARKS_MAX) : [];
  } catch {
    return [];
  }
}

function isCapture(value: unknown): value is CaptureSummary {
  const capture = value as Partial<CaptureSummary> | null;
  const texts = [
    capture?.id,
    capture?.tunnel_id,
    capture?.timestamp,
    capture?.method,
    capture?.path,
    capture?.client_ip,
  ];
  return texts.every((text) => typeof text === "string");
}

let current: { organizationId: string; bookmarks: Bookmarks } | undefined;

export function getBookmarks(organizationId: string): Bookmarks {
  if (current?.organizationId !== organizationId) {
    current = { organizationId, bookmarks: new Bookmarks(organizationId) };
  }
  return current.bookmarks;
}
