/** Runs a traffic policy on the captured requests of a tunnel, without saving it. */
import { isAmbiguous } from "../../../../access/paths/denied-paths.ts";
import {
  DryRun,
  type CapturedVisit,
  type CurrentSettings,
} from "../../../../access/policy-dry-run.ts";
import type { TrafficPolicy } from "../../../../protocol/schemas/access/policies.ts";
import type { PolicyDryRun } from "../../../../protocol/schemas/access/policy-dry-run.ts";
import type { Captures } from "../captures.ts";

/** The work between two pauses for other events, because visitors must not wait for a dry run: about 3 ms. */
const DRY_RUN_BATCH_CHARS = 8_192;
/** The cost of a request in addition to its path, in characters. */
const REQUEST_CHARS = 160;
/** The ambiguous paths that a policy with denied paths is evaluated on, together: about 100 ms. */
const DRY_RUN_AMBIGUOUS_MAX_CHARS = 512 * 1024;

export interface DryRunRequest {
  policy: TrafficPolicy;
  /** The newest requests, at most this many. */
  limit: number;
}

export async function dryRunPolicy(
  { policy, limit }: DryRunRequest,
  captures: Pick<Captures, "listVisits">,
  current: CurrentSettings,
): Promise<PolicyDryRun> {
  const readsHeaders = policy.actions.some(({ kind }) => kind === "jwt_validation");
  const listed = await captures.listVisits(limit, readsHeaders);
  const readsPaths = policy.actions.some(({ kind }) => kind === "deny");
  const visits = readsPaths ? takeNewest(listed) : listed;
  const dryRun = new DryRun(policy, current);
  let chars = 0;
  for (const visit of visits) {
    dryRun.add(visit);
    chars += REQUEST_CHARS + visit.path.length;
    if (chars < DRY_RUN_BATCH_CHARS) continue;
    chars = 0;
    await scheduler.wait(0);
  }
  return dryRun.result;
}

/** The newest visits whose paths can be read in the time of a dry run. @param visits oldest first. */
function takeNewest(visits: CapturedVisit[]): CapturedVisit[] {
  let chars = 0;
  const tooOld = visits.findLastIndex(({ path }) => {
    if (isAmbiguous(path)) chars += path.length;
    return chars > DRY_RUN_AMBIGUOUS_MAX_CHARS;
  });
  return visits.slice(tooOld + 1);
}
