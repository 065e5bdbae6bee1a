/** Bounds that several files of workers/ share, each with its unit in its name. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../shared/time.ts";

/** How long a visitor who signed in may come back without doing so again. */
export const VISITOR_PASS_SECONDS = 12 * 3600;
export const EMAIL_CODE_GUESSES_WINDOW_MS = HOUR_MS;
export const REFRESH_TOKEN_MS = 30 * DAY_MS;
/** While a session is used, its row says when, to this precision. */
export const SESSION_SEEN_MS = MINUTE_MS;
/** Unused reset tokens of one account; further requests send nothing until the oldest ends. */
export const PASSWORD_RESETS_MAX = 3;
export const MFA_ACCOUNT_WINDOW_MS = HOUR_MS;
/** How long a person may take at an identity provider. */
export const PROVIDER_SIGN_IN_MAX_MS = 10 * MINUTE_MS;
/** Where a sign-in leads back to: it travels in a cookie, of which browsers keep 4 KiB. */
export const RETURN_TO_MAX_CHARS = 2_000;
export const DEVICE_CODE_MAX_MS = 10 * MINUTE_MS;
export const OUTBOX_BATCH_ROWS = 100;
/** Mails that the scheduled job sends at once: Workers open six connections. */
export const MAIL_BATCH_ROWS = 5;
/** A row that says "connected" and is older than this is asked after. */
export const TUNNEL_STATUS_FRESH_MS = 15_000;
export const TUNNEL_CONFIRM_MAX_ROWS = 100;
/** Tunnels that one run of the scheduled job lets expire in one transaction. */
export const EXPIRY_BATCH_ROWS = 100;
/** Secrets of accounts that are read at a time to be put under another key. */
export const REENCRYPTION_BATCH_ROWS = 100;
/** Dead sessions, codes and tokens' rows are kept this long for whoever asks what happened. */
export const DEAD_ROW_KEEP_MS = 30 * DAY_MS;
/** How often a random name is drawn before giving up: one collision is rare, three say something else. */
export const RANDOM_NAME_MAX_TRIES = 3;
/** From the first payment that failed; until then the plan stays. */
export const PAYMENT_GRACE_MS = 7 * DAY_MS;
/** How many subscriptions whose grace is over one run of the scheduled job takes at once. */
export const LAPSED_BATCH_ROWS = 100;
/** Look-ups of TXT records for one organization, at once and then one each: as many claims as can wait, twice. */
export const TXT_LOOKUP_BURST = 200;
/** Rows that one run of the scheduled job deletes in one statement. */
export const TRAFFIC_DELETE_BATCH_ROWS = 10_000;
/** The last report of a tunnel that has ended may be late by this much. */
export const COUNTERS_FOLD_AFTER_MS = DAY_MS;
/** Counters of ended tunnels that become their organization's in one statement. */
export const COUNTERS_FOLD_BATCH_ROWS = 500;
export const NETWORKS_PER_ORG_MAX = 100;
export const RECEIVERS_MAX = 100;
