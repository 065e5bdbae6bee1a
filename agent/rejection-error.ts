/** The server rejected the agent permanently. `reason` is the name of a close code or an error code of the API. */
export class RejectionError extends Error {
  // The bundle shortens the names of classes, and programs log this one.
  static override readonly name = "Rejected";
  override name = "Rejected";
  readonly reason: string;
  /** The next step of the user when the server did not accept the token; undefined for other reasons. */
  readonly renewal: string | undefined;

  constructor(reason: string, explanation: string, renewal?: string) {
    super(explanation);
    this.reason = reason;
    this.renewal = reason === "unauthorized" ? renewal : undefined;
  }
}
