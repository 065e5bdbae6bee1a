/** The keys of stored captures. `capture-store.ts` describes what is stored under them. */
import type { Page, PageDetails } from "./page.ts";

const PREFIX = "capture:";
export const KEY = {
  page: `${PREFIX}page:`,
  details: `${PREFIX}details:`,
  long: `${PREFIX}long:`,
  log: `${PREFIX}log:`,
  body: `${PREFIX}body:`,
} as const;

/** How much older than its newest record the records of a page may be. */
export const PAGE_SPAN_MS = 3_000;

export function toBodyKey(id: string, side: "request" | "response"): string {
  return `${KEY.body}${id}:${side}`;
}

export function toLogKey(id: string, page: number): string {
  return `${KEY.log}${id}:${String(page).padStart(10, "0")}`;
}

/** The newest id of a page. */
export function getPageId(key: string): string {
  return key.slice(KEY.page.length);
}

export function readPageDetails(
  kv: Pick<SyncKvStorage, "get">,
  pageKey: string,
  page: Page,
): PageDetails | undefined {
  return page.details ?? kv.get<PageDetails>(KEY.details + getPageId(pageKey));
}
