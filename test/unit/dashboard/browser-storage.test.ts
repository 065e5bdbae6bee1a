/** What the browser stores, and what it refuses to store. */
import { afterEach, expect, test, vi } from "vitest";
import { readStored, writeStored } from "../../../dashboard/api/browser-storage.ts";
import { Bookmarks } from "../../../dashboard/inspector/bookmarks.ts";
import { buildCaptureSummary, getCaptureId } from "../../harness/tunnel/capture.ts";

/** @param isFull whether it refuses to store anything. */
function stubStorage(stored = new Map<string, string>()) {
  const state = { isFull: false };
  const localStorage = {
    getItem: (name: string) => stored.get(name) ?? null,
    removeItem: (name: string) => void stored.delete(name),
    setItem(name: string, value: string) {
      if (state.isFull) throw new DOMException("full", "QuotaExceededError");
      stored.set(name, value);
    },
  };
  vi.stubGlobal("localStorage", localStorage);
  return state;
}
afterEach(() => vi.unstubAllGlobals());

test("a value that does not fit into the storage replaces the stored one while the page is open", () => {
  const storage = stubStorage();
  writeStored("localStorage", "theme", "light");
  storage.isFull = true;
  writeStored("localStorage", "theme", "dark");
  expect(readStored("localStorage", "theme")).toBe("dark");
  writeStored("localStorage", "theme", null);
  expect(readStored("localStorage", "theme")).toBeNull();
  storage.isFull = false;
  writeStored("localStorage", "theme", "light");
  expect(readStored("localStorage", "theme")).toBe("light");
});

test("a page without access to the storage keeps values while it is open", () => {
  writeStored("localStorage", "width", "40");
  expect(readStored("localStorage", "width")).toBe("40");
  writeStored("localStorage", "width", null);
  expect(readStored("localStorage", "width")).toBeNull();
});

test("bookmarks that two tabs add are both stored", () => {
  stubStorage();
  const [one, other] = [new Bookmarks("two-tabs"), new Bookmarks("two-tabs")];
  expect(one.toggle(buildCaptureSummary(1))).toBe(true);
  expect(other.toggle(buildCaptureSummary(2))).toBe(true);
  expect(one.toggle(buildCaptureSummary(1))).toBe(false);
  expect(new Bookmarks("two-tabs").getAll().map(({ id }) => id)).toEqual([getCaptureId(2)]);
});
