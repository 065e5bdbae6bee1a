/** The mails to the owners of an organization about its custom domains. */
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
