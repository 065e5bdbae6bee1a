/** The mails to owners about their custom domains, as outbox messages. */
import type { Config } from "../config/config.ts";
import { getProofRecordName } from "../integrations/dns/domain-proof.ts";
import { toOutboxMail } from "../integrations/mail/mail.ts";
import { domainReleasedMail, proofMissingMail } from "../integrations/mail/domain-mails.ts";
import type { DomainNotices } from "../store/domains/domain-notices.ts";

export function buildDomainNotices(config: Config): DomainNotices {
  return {
    proofMissing: (to, domain) => {
      const recordName = getProofRecordName(domain.domain);
      return toOutboxMail(config, proofMissingMail(to, { ...domain, recordName }, config));
    },
    released: (to, domain, reason) =>
      toOutboxMail(config, domainReleasedMail(to, { domain, reason }, config)),
  };
}
