/** The query of `GET /inspector` and `GET /inspector/har`. */

/** As many as the API returns at most. */
export const CAPTURES_PAGE_ROWS = 500;

export interface CapturesQuery {
  tunnel_id?: string;
  method?: string;
  status?: string;
  path?: string;
  /** An id: only older requests. */
  after?: string;
}

/** For as many requests as the API returns at most. */
export function formatCapturesQuery(query: CapturesQuery): string {
  return new URLSearchParams({ limit: String(CAPTURES_PAGE_ROWS), ...query }).toString();
}
