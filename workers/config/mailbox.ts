/** Who a mail is from: `Name <address>`, or an address alone. */

export interface Mailbox {
  /** Empty: it goes without one. */
  name: string;
  address: string;
}

/** ASCII, since not every server on a mail's way takes more; `localhost` counts as a domain here. */
const ADDRESS = /^[!#-'*+/-9=?A-Z^-~.-]+@[a-zA-Z0-9.-]+$/;

/** @returns null when it can't be one. */
export function parseMailbox(text: string): Mailbox | null {
  const [, name = "", bracketed] = /^([^<>]*?)\s*<([^<>]*)>$/.exec(text.trim()) ?? [];
  const address = bracketed ?? text.trim();
  const plainName = name.trim().replace(/^"(.*)"$/, "$1");
  return ADDRESS.test(address) && !/\p{Cc}/u.test(plainName) ? { name: plainName, address } : null;
}
