/** A part of the scheduled job: checks that verified domains still have the TXT records of their organizations. */
import type { Config } from "../config/config.ts";
import type { Env } from "../env.ts";
import { checkProof } from "../integrations/dns/domain-proof.ts";
import type { Database } from "../store/database.ts";
import { claimDueProofs, saveMissingProof, saveProof } from "../store/domains/domain-proofs.ts";
import { inParallel } from "../../shared/in-parallel.ts";
import { buildDomainNotices } from "./domain-notices.ts";

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
