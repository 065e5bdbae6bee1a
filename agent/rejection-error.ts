interface RejectionDetails {
  /** For a token: what the user can do when the server does not accept it. */
  renewal?: string | undefined;
  subcode?: string | undefined;
  /** The origin of the server, when the advice to the user may name it. */
  server?: string | undefined;
}

/** The server rejected the agent permanently. `reason` is the name of a close code or an error code of the API. */
export class RejectionError extends Error {
  // The bundle shortens the names of classes, and programs log this one.
  static override readonly name = "Rejected";
  override name = "Rejected";
  readonly reason: string;
  /** Says more than `reason`: a `CloseSubcode`, or one of a newer server. undefined without one. */
  readonly subcode: string | undefined;
  /** The next step of the user when the server did not accept the token; undefined for other reasons. */
  readonly renewal: string | undefined;
  /** The server's origin. undefined when the error does not know it. */
  readonly server: string | undefined;

  constructor(reason: string, explanation: string, details: RejectionDetails = {}) {
    const { renewal, subcode, server } = details;
    super(explanation);
    this.reason = reason;
    this.subcode = subcode;
    this.server = server;
    this.renewal = reason === "unauthorized" ? renewal : undefined;
  }
}
