/** Headers that the agent adds to each request to the local server. A visitor can't send others under their names. */
import { toPlainName } from "../../protocol/header-names.ts";
import { describeIssue } from "../../protocol/schemas/issue-messages.ts";
import { HeaderValue, SettableName } from "../../protocol/schemas/access/policies.ts";
import { UsageError } from "../options.ts";

export type AddedHeader = readonly [name: string, value: string];

/** @param text `Name: value`. @param source for messages: `--header`. @throws UsageError */
export function parseAddedHeader(text: string, source: string): AddedHeader {
  const colon = text.indexOf(":");
  if (colon < 1) throw new UsageError(`${source} must be a name and a value, such as "X-Env: dev"`);
  return checkAddedHeader([text.slice(0, colon).trim(), text.slice(colon + 1).trim()], source);
}

/** @throws UsageError */
export function checkAddedHeader([name, value]: AddedHeader, source: string): AddedHeader {
  if (name.toLowerCase() === "host")
    throw new UsageError(`${source} can't set Host; use --host-header`);
  const nameIssue = SettableName.safeParse(name, { error: describeIssue }).error?.issues[0];
  if (nameIssue) throw new UsageError(`the name ${name} of ${source} ${nameIssue.message}`);
  const valueIssue = HeaderValue.safeParse(value, { error: describeIssue }).error?.issues[0];
  if (valueIssue) throw new UsageError(`the value of ${source} ${name} ${valueIssue.message}`);
  return [name, value];
}

/** Changes the header pairs of a request in place. */
export function addHeaders(pairs: string[], added: readonly AddedHeader[]): void {
  if (added.length === 0) return;
  const names = new Set(added.map(([name]) => toPlainName(name.toLowerCase())));
  for (let at = pairs.length - 2; at >= 0; at -= 2) {
    if (names.has(toPlainName(pairs[at]!.toLowerCase()))) pairs.splice(at, 2);
  }
  for (const [name, value] of added) pairs.push(name, value);
}
