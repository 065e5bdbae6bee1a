/** The filter of the list of tokens. Its values are in the URL. */
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { isValidToken } from "../../api/organization/tokens.ts";
import type { QueryParameters } from "../../app/query-parameters.ts";

/** @param search the parameters of the URL, such as `?text=ci&kind=master&project=staging&state=all`. */
export function filterTokens(tokens: readonly Token[], search: QueryParameters): Token[] {
  const { kind = "", project = "", state = "" } = search;
  const text = (search.text ?? "").trim().toLowerCase();
  return tokens.filter(
    (token) =>
      matchesText(token, text) &&
      (kind === "" || token.kind === kind) &&
      (project === "" || token.projectSlug === project) &&
      (state === "all" || isValidToken(token) === (state !== "ended")),
  );
}

function matchesText({ name, nonce, allowedSubdomains }: Token, text: string): boolean {
  return (
    name.toLowerCase().includes(text) ||
    nonce.startsWith(text) ||
    allowedSubdomains.some((pattern) => pattern.includes(text))
  );
}
