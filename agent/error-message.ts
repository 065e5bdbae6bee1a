/** The message of an error's innermost cause, which says what happened: "fetch failed" does not. */
export function getErrorMessage(error: unknown): string {
  const cause = findInnermostCause(error);
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

/** A host with several addresses fails with one error for each of them; the first one stands for all. */
function findInnermostCause(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return inner instanceof Error ? findInnermostCause(inner) : error;
}
