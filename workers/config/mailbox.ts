/** The sender of mails: `Name <address>`, or an address alone. */

export interface Mailbox {
  /** Empty: no name. */
  name: string;
  address: string;
}

/** ASCII only, since not every mail server accepts more. `localhost` is allowed as a domain. */
const ADDRESS = /^[!#-'*+/-9=?A-Z^-~.-]+@[a-zA-Z0-9.-]+$/;

/** @returns null when it is not a valid mailbox. */
export function parseMailbox(text: string): Mailbox | null {
  const [, name = "", bracketed] = /^([^<>]*?)\s*<([^<>]*)>$/.exec(text.trim()) ?? [];
  const address = bracketed ?? text.trim();
  const unquotedName = name.trim().replace(/^"(.*)"$/, "$1");
  return ADDRESS.test(address) && !/\p{Cc}/u.test(unquotedName)
    ? { name: unquotedName, address }
    : null;
}
