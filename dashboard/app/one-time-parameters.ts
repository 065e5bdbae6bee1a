/**
 * The parameters with which a sign-in through a provider, or a mailed link, opens a page. They are removed from the page's URL
 * before anything else happens, so that secrets stay neither in the address bar nor in the history.
 */
export interface OneTimeParameters {
  /** Whether a sign-in through a provider has just succeeded. */
  hasSignedIn: boolean;
  /** The challenge of the second factor that this sign-in still requires. */
  challenge: string | null;
  /** The error code of RFC 6749 when the sign-in at the provider failed. */
  failure: string | null;
  /** The token of a link in an email. */
  token: string | null;
}

/** Reads the parameters, and removes them from the page's URL. */
export function takeOneTimeParameters(): OneTimeParameters {
  const { pathname, searchParams: query, hash } = new URL(location.href);
  const fragment = new URLSearchParams(hash.slice(1));
  const parameters = {
    hasSignedIn: query.has("oauth_token"),
    challenge: query.get("mfa_challenge"),
    failure: query.get("oauth_error"),
    token: fragment.get("token"),
  };
  for (const name of ["oauth_token", "mfa_challenge", "oauth_error"]) query.delete(name);
  fragment.delete("token");
  const rest = [query.size > 0 ? `?${query}` : "", fragment.size > 0 ? `#${fragment}` : ""];
  // The router finds the position of the page by this state.
  history.replaceState(history.state, "", pathname + rest.join(""));
  return parameters;
}
