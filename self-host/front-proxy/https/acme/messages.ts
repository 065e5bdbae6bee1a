/** Messages between the front proxy and the program that obtains a certificate. */

/** To the program. Each later message says that the challenge is answered. */
export interface OrderRequest {
  /** The host name that the certificate is for. */
  name: string;
  /** Where the certificate authority lists the URLs of its API (RFC 8555 §7.1.1). */
  directoryUrl: string;
  /** For the authority's mails to the operator; null: none. */
  email: string | null;
  /** In PEM. */
  accountKey: string;
}

/** From the program. */
export type OrderEvent =
  | { type: "challenge"; token: string; keyAuthorization: string }
  /** Both in PEM. */
  | { type: "issued"; cert: string; key: string }
  | { type: "failed"; reason: string };
