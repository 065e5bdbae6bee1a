/**
 * The resources that an organization can have more of than its plan includes, each with what happens to them: the mail
 * about a downgrade and the billing page say it in the same text. This file imports no library, because browser pages
 * import it too.
 */
const NOTES = {
  reserved_subdomains: (count: number, allowed: number) =>
    `Reserved subdomains: ${count}. You keep them, but can't reserve more: the plan includes ${allowed}.`,
  tunnel_passwords: (count: number) =>
    `Tunnels with a password: ${count}. They refuse all visitors until the plan includes passwords or you remove the passwords.`,
  identity_gates: (count: number) =>
    `Tunnels that require visitors to sign in: ${count}. They refuse all visitors until the plan includes sign-in for visitors or you remove that requirement.`,
  master_keys: (count: number) =>
    `Master keys: ${count}. They can't mint tokens until the plan includes master keys.`,
};

type LimitedResource = keyof typeof NOTES;
export const LIMITED_RESOURCES = Object.keys(NOTES) as LimitedResource[];

interface OverLimit {
  what: LimitedResource;
  count: number;
  allowed: number;
}

export function describeOverLimit({ what, count, allowed }: OverLimit): string {
  return NOTES[what](count, allowed);
}
