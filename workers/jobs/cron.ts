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
  deleteEndedTokens,
  deleteEndedTunnels,
  ENDED_ROWS_DELETE_BATCH,
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

export async function runCron(env: Env): Promise<void> {
  const db = createDatabase(env);
  const jobs: Record<string, () => Promise<unknown>> = {
    outbox: () => retryOutbox(env, db),
    "re-encryption": () => reencryptSecrets(getConfig(env), db),
    expiry: async () => {
      while ((await expireTunnels(db)) === EXPIRY_BATCH_ROWS);
    },
    "unused random names": async () => {
      while ((await deleteUnusedRandomNames(db)) === EXPIRY_BATCH_ROWS);
    },
    "domain claims": async () => {
      while ((await expireClaims(db)) === EXPIRY_BATCH_ROWS);
    },
    "domain proofs": () => recheckProofs(env, getConfig(env), db),
    "replaced webhook secrets": async () => {
      while ((await deleteReplacedSecrets(db)) === EXPIRY_BATCH_ROWS);
    },
    ...Object.fromEntries(EXPIRING_ROWS.map((rows) => [rows, () => deleteExpiredRows(db, rows)])),
    accounts: () => deleteUnverifiedAccounts(db, ago(UNVERIFIED_ACCOUNT_MAX_MS)),
    billing: async () => {
      const rules = buildPlanRules(getConfig(env));
      while ((await endOverduePlans(db, rules)) === LAPSED_BATCH_ROWS);
    },
    "billing events": () => deleteOldBillingEvents(db),
    traffic: async () => {
      const minutes = () => deleteOldTraffic(db, "minute", ago(TRAFFIC_MINUTES_KEEP_MS));
      while ((await minutes()) === TRAFFIC_DELETE_BATCH_ROWS);
      const hours = () => deleteOldTraffic(db, "hour", ago(TRAFFIC_HOURS_KEEP_MS));
      while ((await hours()) === TRAFFIC_DELETE_BATCH_ROWS);
    },
    "ended tunnels": async () => {
      while ((await deleteEndedTunnels(db)) === ENDED_ROWS_DELETE_BATCH);
    },
    "ended tokens": async () => {
      while ((await deleteEndedTokens(db)) === ENDED_ROWS_DELETE_BATCH);
    },
    "old audit events": async () => {
      while ((await deleteOldAuditEvents(db)) === AUDIT_DELETE_BATCH_ROWS);
    },
    "excess audit events": () => deleteExcessAuditEvents(db),
    counters: async () => {
      const fold = () => foldCounters(db, ago(COUNTERS_FOLD_AFTER_MS));
      while ((await fold()) === COUNTERS_FOLD_BATCH_ROWS);
    },
    // Last, because a mail server can be slow.
    mails: () => retryMails(env, db),
  };
  for (const [job, run] of Object.entries(jobs)) {
    try {
      await run();
    } catch (error) {
      log("error", "job_failed", { job, cause: describeError(error) });
    }
  }
}
