/** Code of a page that could not be loaded, because the server did not answer or has the files of a newer version. */
const failures = new WeakSet<object>();

// Vite reports each import that has failed.
window.addEventListener("vite:preloadError", ({ payload }) => void failures.add(payload));

/** The code of a whole page, of which nothing is shown. */
export class PageLoadError extends Error {
  override name = "PageLoadError";
}

/**
 * The router recognizes a failed import by the beginning of its message, and would reload the page at once. If the server
 * can't be reached, the browser would then show its own error page.
 *
 * @throws PageLoadError
 */
export async function loadPage<Page>(load: () => Promise<Page>): Promise<Page> {
  try {
    return await load();
  } catch (cause) {
    throw new PageLoadError(`The page has no code: ${String(cause)}`, { cause });
  }
}

/** Browsers, React and the router remember that an import has failed: only another page load repeats it. */
export function isLoadError(error: unknown): boolean {
  return error instanceof PageLoadError || (error instanceof Error && failures.has(error));
}
