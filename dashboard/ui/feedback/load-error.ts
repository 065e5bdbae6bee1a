/** Code of a page that could not be loaded, because the server did not answer or has the files of a newer version. */
const failures = new WeakSet<object>();

// Vite reports each import that has failed.
window.addEventListener("vite:preloadError", ({ payload }) => void failures.add(payload));

/** Browsers, React and the router remember that an import has failed: only another page load repeats it. */
export function isLoadError(error: unknown): boolean {
  return error instanceof Error && failures.has(error);
}
