/** A part of the scheduled job: checks that verified domains still belong to the organizations that proved it. */
import type { Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { checkProof, getChallengeName } from "../integrations/dns/domain-proof.ts";
import { encryptMail } from "../integrations/mail/mail.ts";
import { domainReleasedMail, proofMissingMail } from "../integrations/mail/domain-mails.ts";
import type { Database } from "../store/database.ts";
import type { DomainNotices } from "../store/domains/domain-notices.ts";
import { claimDueProofs, saveMissingProof, saveProof } from "../store/domains/domain-proofs.ts";
import { inParallel } from "../../shared/in-parallel.ts";

/** A Worker can have six open connections. */
const CONCURRENT_PROOF_CHECKS = 4;

/** Checks one batch. The rest waits for the next run, so that a resolver gets no burst. */
export async function recheckProofs(env: Env, config: Config, db: Database): Promise<void> {
  const notices = buildDomainNotices(config);
  const due = await claimDueProofs(db);
  await inParallel(CONCURRENT_PROOF_CHECKS, due, async (domain) => {
    const result = await checkProof(env, config, domain);
    if (result === "proven") await saveProof(db, domain);
    else if (result !== "unavailable") await saveMissingProof(db, domain, notices);
  });
}

export function buildDomainNotices(config: Config): DomainNotices {
  return {
    proofMissing: (to, domain) => {
      const recordName = getChallengeName(domain.domain);
      return encryptMail(config, proofMissingMail(to, { ...domain, recordName }, config));
    },
    released: (to, domain, reason) =>
      encryptMail(config, domainReleasedMail(to, { domain, reason }, config)),
  };
}
