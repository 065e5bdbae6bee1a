/**
 * Repeated checks of verified domains. A domain that changes hands must not stay with the organization that once proved
 * it, so that its record has to remain in the DNS.
 */
import { and, eq, inArray, isNotNull, lte, sql } from "drizzle-orm";
import { PROOF_MISSING_MAX_MS } from "../../../protocol/limits.ts";
import { PROOF_CHECK_BATCH_ROWS, PROOF_CHECK_INTERVAL_MS } from "../../limits.ts";
import { serviceActor } from "../audit.ts";
import { fromNow } from "../clock.ts";
import type { Database, UnitOfWork } from "../database.ts";
import { domains } from "../tables/domains.ts";
import type { DomainNotices } from "./domain-notices.ts";
import { mailOwners } from "../organizations/memberships.ts";
import { loseDomain, type DomainRow } from "./domains.ts";
import { HOUR_MS } from "../../../shared/time.ts";

/** A check without a result, because the resolver failed or the server stopped, is repeated after this. */
const PROOF_CHECK_RETRY_MS = HOUR_MS;

/** Claims a batch of the verified domains that are due. @returns what to check; after a full batch there may be more. */
export function claimDueProofs({ query }: Database): Promise<DomainRow[]> {
  const due = query
    .select({ id: domains.id })
    .from(domains)
    .where(and(isNotNull(domains.verifiedAt), lte(domains.nextProofCheckAt, sql`now()`)))
    .orderBy(domains.nextProofCheckAt)
    .limit(PROOF_CHECK_BATCH_ROWS)
    .for("update", { skipLocked: true });
  return query
    .update(domains)
    .set({ nextProofCheckAt: fromNow(PROOF_CHECK_RETRY_MS) })
    .where(inArray(domains.id, due))
    .returning();
}

/** The proof was found. */
export function saveProof(db: Database, { id }: Pick<DomainRow, "id">): Promise<void> {
  return db.transaction(async ({ tx, audit }) => {
    const row = await lockVerified(tx, id);
    if (!row) return;
    await tx
      .update(domains)
      .set({ proofMissingSince: null, nextProofCheckAt: fromNow(PROOF_CHECK_INTERVAL_MS) })
      .where(eq(domains.id, id));
    if (row.proofMissingSince === null) return;
    audit(serviceActor(row.orgId), "domain_proof_found", id, { domain: row.domain });
  });
}

/** The proof was not found: the owners are warned, and after a while the domain is released. */
export function saveMissingProof(
  db: Database,
  { id }: Pick<DomainRow, "id">,
  notices: DomainNotices,
): Promise<void> {
  return db.transaction(async (change) => {
    const row = await lockVerified(change.tx, id);
    if (!row) return;
    const { domain, orgId, proofMissingSince } = row;
    const now = Date.now();
    const releaseAt = new Date((proofMissingSince?.getTime() ?? now) + PROOF_MISSING_MAX_MS);
    if (releaseAt.getTime() <= now) {
      await loseDomain(change, row, "proof_missing", notices);
      return;
    }
    const nextCheckMs = Math.min(PROOF_CHECK_INTERVAL_MS, releaseAt.getTime() - now);
    await change.tx
      .update(domains)
      .set({
        proofMissingSince: proofMissingSince ?? new Date(now),
        nextProofCheckAt: fromNow(nextCheckMs),
      })
      .where(eq(domains.id, id));
    if (proofMissingSince !== null) return;
    change.audit(serviceActor(orgId), "domain_proof_missing", id, {
      domain,
      releaseAt: releaseAt.toISOString(),
    });
    await mailOwners(change, orgId, (to) => notices.proofMissing(to, { ...row, releaseAt }));
  });
}

async function lockVerified(tx: UnitOfWork["tx"], id: string): Promise<DomainRow | undefined> {
  const [row] = await tx
    .select()
    .from(domains)
    .where(and(eq(domains.id, id), isNotNull(domains.verifiedAt)))
    .for("update");
  return row;
}
