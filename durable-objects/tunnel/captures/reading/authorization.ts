/** The `authorization` headers of captured requests, which their records lack. */
import type { CapturedVisit } from "../../../../access/policy-dry-run.ts";
import { findHeader } from "../../../../shared/raw-headers.ts";
import type { StoredRecords } from "./stored-records.ts";

/** @param visits oldest first. */
export async function addAuthorization(
  visits: CapturedVisit[],
  records: Pick<StoredRecords, "listRequestLines">,
): Promise<void> {
  const [oldest] = visits;
  if (!oldest) return;
  const visitsById = new Map(visits.map((visit) => [visit.id, visit]));
  for await (const [id, lines] of records.listRequestLines(oldest.id)) {
    const visit = visitsById.get(id);
    if (visit) visit.authorization = findHeader(lines, "authorization");
  }
}
