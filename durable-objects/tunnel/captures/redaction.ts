/**
 * Removes what must not be stored: the values of headers that a tunnel's owner names, and the tickets of visitors'
 * sign-ins.
 */
import { SIGN_IN_TICKET_PATH } from "../../../access/identity.ts";
import { toPlainName } from "../../../protocol/header-names.ts";
import { REDACTED } from "../../../protocol/schemas/inspector/captures.ts";
import { replaceHeaderValues } from "../../../shared/raw-headers.ts";

/**
 * @param lines names and values in turn. They are not modified: the exchange may still need them.
 * @param names as `toPlainName` writes them: `X_Api_Key` is `x-api-key` for many local servers.
 */
export function redactHeaders(lines: string[], names: ReadonlySet<string>): string[] {
  const redacted = lines.slice();
  replaceHeaderValues(redacted, (name, value) =>
    names.has(name) || names.has(toPlainName(name.toLowerCase())) ? REDACTED : value,
  );
  return redacted;
}

const TICKET_TARGET_START = `${SIGN_IN_TICKET_PATH}?`;

/** A ticket signs its visitor in. Readers of captured requests must not get one that has not been used. */
export function redactTarget(target: string): string {
  return target.startsWith(TICKET_TARGET_START) ? TICKET_TARGET_START + REDACTED : target;
}
