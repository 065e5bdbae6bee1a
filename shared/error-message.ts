/** Errors in the logs of the programs on Node.js. */

/** The message of an error, on one line. An AggregateError of failed connections has it in its inner errors only. */
export function getErrorMessage(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return getErrorMessage(error.errors[0]);
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s+/g, " ").trim();
}
