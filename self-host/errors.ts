/** What stops a start for good: its message is the one line that the operator reads. */
export class StartError extends Error {
  override name = "StartFailure";
}

/** The words of an error, on one line. Connections refused on several addresses have them only inside. */
export function getErrorMessage(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return getErrorMessage(error.errors[0]);
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s+/g, " ").trim();
}
