/**
 * What the address brought along. Secrets are taken out of it before anything else happens: the address bar,
 * the history and whatever reads either never have them for longer.
 */
export interface Arrival {
  /** A provider said who it is. */
  signedIn: boolean;
  /** It did, and a second factor is asked for. */
  challenge: string | null;
  /** RFC 6749's code of what went wrong there. */
  failure: string | null;
  /** Of a link in a mail. */
  token: string | null;
}

export function takeArrival(): Arrival {
  const { pathname, searchParams: query, hash } = new URL(location.href);
  const fragment = new URLSearchParams(hash.slice(1));
  const arrival = {
    signedIn: query.has("oauth_token"),
    challenge: query.get("mfa_challenge"),
    failure: query.get("oauth_error"),
    token: fragment.get("token"),
  };
  for (const name of ["oauth_token", "mfa_challenge", "oauth_error"]) query.delete(name);
  fragment.delete("token");
  const rest = [query.size > 0 ? `?${query}` : "", fragment.size > 0 ? `#${fragment}` : ""];
  history.replaceState(null, "", pathname + rest.join(""));
  return arrival;
}
