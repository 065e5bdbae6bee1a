/** An error that prevents the start. Its message is the one line that the operator reads. */
export class StartError extends Error {
  override name = "StartError";
}
