/** The scheduled job, which runs once a minute: by a cron trigger when hosted, by a timer on a self-hosted server. */
import {
  EXPIRY_BATCH_ROWS,
  LAPSED_BATCH_ROWS,
  COUNTERS_FOLD_AFTER_MS,
  COUNTERS_FOLD_BATCH_ROWS,
  TRAFFIC_DELETE_BATCH_ROWS,
} from "../limits.ts";
import { TRAFFIC_HOURS_KEEP_MS, TRAFFIC_MINUTES_KEEP_MS } from "../../protocol/limits.ts";
import { getConfig } from "../config/config.ts";
import type { Env } from "../env.ts";
import { describeError } from "../errors.ts";
import { log } from "../../shared/log.ts";
import { deleteUnverifiedAccounts } from "../store/accounts/accounts.ts";
import { ago } from "../store/clock.ts";
import {
  deleteEndedProjects,
  deleteEndedTokens,
  deleteEndedTunnels,
  ENDED_ROWS_DELETE_BATCH,
  unlistExpiredTunnels,
} from "../store/ended-rows.ts";
import { deleteExpiredRows, EXPIRING_ROWS } from "../store/expired-rows.ts";
import {
  AUDIT_DELETE_BATCH_ROWS,
  deleteExcessAuditEvents,
  deleteOldAuditEvents,
} from "../store/organizations/audit-retention.ts";
import { expireClaims } from "../store/domains/domains.ts";
import { deleteReplacedSecrets } from "../store/webhooks/receivers.ts";
import { deleteOldBillingEvents, endOverduePlans } from "../store/billing/subscriptions.ts";
import { deleteOldTraffic, foldCounters } from "../store/metrics/traffic.ts";
import { expireTunnels, deleteUnusedRandomNames } from "../store/tunnels/lifecycle.ts";
import { recheckProofs } from "./domain-proofs.ts";
import { retryMails, retryOutbox, createDatabase } from "./outbox.ts";
import { buildPlanRules } from "./plan-rules.ts";
import { reencryptSecrets } from "./re-encryption.ts";
import { DAY_MS } from "../../shared/time.ts";

/** An account whose address was not verified within this time is deleted, which frees the address. */
const UNVERIFIED_ACCOUNT_MAX_MS = 7 * DAY_MS;

/** @returns how many jobs have failed. */
export async function runCron(env: Env): Promise<number> {
  let failed = 0;
  const db = createDatabase(env);
  const jobs: Record<string, () => Promise<unknown>> = {
    outbox: () => retryOutbox(env, db),
    "re-encryption": () => reencryptSecrets(getConfig(env), db),
    expiry: () => runInBatches(EXPIRY_BATCH_ROWS, () => expireTunnels(db)),
    "unused random names": () => runInBatches(EXPIRY_BATCH_ROWS, () => deleteUnusedRandomNames(db)),
    "domain claims": () => runInBatches(EXPIRY_BATCH_ROWS, () => expireClaims(db)),
    "domain proofs": () => recheckProofs(env, getConfig(env), db),
    "replaced webhook secrets": () =>
      runInBatches(EXPIRY_BATCH_ROWS, () => deleteReplacedSecrets(db)),
    ...Object.fromEntries(EXPIRING_ROWS.map((rows) => [rows, () => deleteExpiredRows(db, rows)])),
    accounts: () => deleteUnverifiedAccounts(db, ago(UNVERIFIED_ACCOUNT_MAX_MS)),
    billing: async () => {
      const rules = buildPlanRules(getConfig(env));
      await runInBatches(LAPSED_BATCH_ROWS, () => endOverduePlans(db, rules));
    },
    "billing events": () => deleteOldBillingEvents(db),
    traffic: async () => {
      const minutes = () => deleteOldTraffic(db, "minute", ago(TRAFFIC_MINUTES_KEEP_MS));
      await runInBatches(TRAFFIC_DELETE_BATCH_ROWS, minutes);
      const hours = () => deleteOldTraffic(db, "hour", ago(TRAFFIC_HOURS_KEEP_MS));
      await runInBatches(TRAFFIC_DELETE_BATCH_ROWS, hours);
    },
    "expired tunnels": () => runInBatches(ENDED_ROWS_DELETE_BATCH, () => unlistExpiredTunnels(db)),
    "ended tunnels": () => runInBatches(ENDED_ROWS_DELETE_BATCH, () => deleteEndedTunnels(db)),
    "ended tokens": () => runInBatches(ENDED_ROWS_DELETE_BATCH, () => deleteEndedTokens(db)),
    "ended projects": () => runInBatches(ENDED_ROWS_DELETE_BATCH, () => deleteEndedProjects(db)),
    "old audit events": () => runInBatches(AUDIT_DELETE_BATCH_ROWS, () => deleteOldAuditEvents(db)),
    "excess audit events": () => deleteExcessAuditEvents(db),
    counters: () =>
      runInBatches(COUNTERS_FOLD_BATCH_ROWS, () => foldCounters(db, ago(COUNTERS_FOLD_AFTER_MS))),
    // Last, because a mail server can be slow.
    mails: () => retryMails(env, db),
  };
  for (const [job, run] of Object.entries(jobs)) {
    try {
      await run();
    } catch (error) {
      failed += 1;
      log("error", "job_failed", { job, cause: describeError(error) });
    }
  }
  return failed;
}

/** Repeats a job that changes `batchRows` rows at most, until it has found fewer. */
async function runInBatches(batchRows: number, runBatch: () => Promise<number>): Promise<void> {
  while ((await runBatch()) === batchRows);
}
