/** An error that prevents the start. Its message is the one line that the operator reads. */
export class StartError extends Error {
  override name = "StartError";
}

/** The message of an error, on one line. An AggregateError of failed connections has it in its inner errors only. */
export function getErrorMessage(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return getErrorMessage(error.errors[0]);
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s+/g, " ").trim();
}
