/** The messages and the codes of errors, for logs and for decisions. */

/** The message of an error, on one line. An AggregateError of failed connections has it in its inner errors only. */
export function getErrorMessage(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return getErrorMessage(error.errors[0]);
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s+/g, " ").trim();
}

/** The code that Node.js or a driver gives an error, such as `ENOENT` or a SQLSTATE. Those of its causes are not read. */
export function getErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
