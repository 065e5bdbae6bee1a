/** The mails to the owners of an organization about its custom domains. */
import type { UnitOfWork } from "../database.ts";
import { listOwners } from "../organizations/memberships.ts";
import type { OutboxMessage } from "../outbox-messages.ts";

/** Why an organization loses a domain without having released it. */
export type LossReason = "proof_missing" | "proven_by_another";

export interface WarnedDomain {
  domain: string;
  /** The value of the TXT record. */
  verificationToken: string;
  /** When the domain is released if the record is still missing. */
  releaseAt: Date;
}

/** Each returns the message to the outbox that mails the notice. */
export interface DomainNotices {
  proofMissing(to: string, domain: WarnedDomain): Promise<OutboxMessage>;
  released(to: string, domain: string, reason: LossReason): Promise<OutboxMessage>;
}

export async function notifyOwners(
  { tx, enqueue }: UnitOfWork,
  orgId: string,
  toMessage: (to: string) => Promise<OutboxMessage>,
): Promise<void> {
  for (const email of await listOwners(tx, orgId)) enqueue(await toMessage(email));
}
