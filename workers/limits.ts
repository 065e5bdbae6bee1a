/** Bounds that several files of workers/ share, each with its unit in its name. */
import { HELLO_TIMEOUT_MS } from "../protocol/limits.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../shared/time.ts";

/** How long a visitor who has signed in is not asked to sign in again. */
export const VISITOR_PASS_SECONDS = 12 * 3600;
/** From the provider's answer to the tunnel's own host: one redirect. */
export const VISITOR_TICKET_MAX_MS = MINUTE_MS;
export const EMAIL_CODE_GUESSES_WINDOW_MS = HOUR_MS;
export const REFRESH_TOKEN_MS = 30 * DAY_MS;
/** The precision of the time in a session's row at which it was last used. */
export const SESSION_LAST_SEEN_PRECISION_MS = MINUTE_MS;
/** Unused password reset tokens of one account; further requests send nothing until the oldest has expired. */
export const PASSWORD_RESETS_MAX = 3;
/** Mails to one address that sign-ups and requests for another code cause within an hour. */
export const SIGN_UP_MAILS_HOURLY_MAX = 10;
/** Sign-ups that wait for their confirmation. Rate limits count by source; this bounds the sum of all sources. */
export const UNVERIFIED_ACCOUNTS_MAX = 100_000;
/** Open sessions of one user; a further sign-in ends the one that was used least recently. */
export const SESSIONS_PER_USER_MAX = 100;
/** Open challenges of one account; a further one ends the oldest. */
export const MFA_OPEN_CHALLENGES_MAX = 20;
export const MFA_GUESSES_WINDOW_MS = HOUR_MS;
/** How long the owner of an account has to cancel the removal of its second factor. */
export const MFA_REMOVAL_DELAY_MS = DAY_MS;
/** How long after a sign-in or a re-authentication a session may set up a second factor. */
export const FRESH_SESSION_MS = 10 * MINUTE_MS;
/** How long a user may take to sign in at an identity provider. */
export const PROVIDER_SIGN_IN_MAX_MS = 10 * MINUTE_MS;
/** The address to return to after a sign-in: it is stored in a cookie, which browsers limit to 4 KiB. */
export const RETURN_TO_MAX_CHARS = 2_000;
export const DEVICE_CODE_MAX_MS = 10 * MINUTE_MS;
/** How long agents and clients wait for the database: shorter than the time after which they give up and learn no reason. */
export const ADMISSION_MAX_MS = HELLO_TIMEOUT_MS - SECOND_MS;
export const OUTBOX_BATCH_ROWS = 100;
/** Mails that the scheduled job sends at the same time: a Worker can have six open connections. */
export const MAIL_BATCH_ROWS = 5;
/** When a row says "connected" and is older than this, the tunnel's object is asked whether it is still true. */
export const TUNNEL_STATUS_FRESH_MS = 15_000;
export const TUNNEL_REFRESH_MAX_ROWS = 100;
/** A tunnel that has expired is listed for this long. */
export const EXPIRED_TUNNEL_LIST_MS = 7 * DAY_MS;
/** A tunnel with a random name is deleted when its agent has been away for this long. */
export const RANDOM_NAME_KEEP_MS = 7 * DAY_MS;
/** Tunnels that the scheduled job ends in one transaction. */
export const EXPIRY_BATCH_ROWS = 100;
/** Secrets of accounts that are read at a time to encrypt them again with the current key. */
export const REENCRYPTION_BATCH_ROWS = 100;
/** Rows of ended sessions, used codes and expired tokens are stored this long, so that their history can be examined. */
export const EXPIRED_ROW_RETENTION_MS = 30 * DAY_MS;
/** Audit events, and rows of ended tunnels and tokens. */
export const AUDIT_RETENTION_MS = 400 * DAY_MS;
export const EMAIL_CODE_MAX_MS = 10 * MINUTE_MS;
export const PASSWORD_RESET_MAX_MS = HOUR_MS;
export const INVITATION_MAX_MS = 7 * DAY_MS;
/** How long the link that removes a second factor works after `MFA_REMOVAL_DELAY_MS`. */
export const MFA_REMOVAL_USABLE_MS = 7 * DAY_MS;
/** How many random names are tried: one collision is rare, and three mean that something else is wrong. */
export const RANDOM_NAME_MAX_TRIES = 3;
/** The organization keeps its plan for this long after the first failed payment. */
export const PAYMENT_GRACE_MS = 7 * DAY_MS;
/** Subscriptions after their grace period that one run of the scheduled job ends in one batch. */
export const LAPSED_BATCH_ROWS = 100;
/** How often it is checked that the TXT record of a verified domain is still there. */
export const PROOF_CHECK_INTERVAL_MS = DAY_MS;
/** Domains whose record one run of the scheduled job checks. */
export const PROOF_CHECK_BATCH_ROWS = 50;
/** Look-ups of TXT records that an organization can make at once: twice the number of open claims. */
export const TXT_LOOKUP_BURST = 200;
/** Rows that one run of the scheduled job deletes in one statement. */
export const TRAFFIC_DELETE_BATCH_ROWS = 10_000;
/** The last report of a tunnel that has ended may arrive this late. */
export const COUNTERS_FOLD_AFTER_MS = DAY_MS;
/** Ended tunnels whose counters are added to their organization's in one statement. */
export const COUNTERS_FOLD_BATCH_ROWS = 500;
export const NETWORKS_PER_ORG_MAX = 100;
export const RECEIVERS_PER_ORG_MAX = 100;
/** A search of the audit log for a text reads at most this many events: the newest that the other filters leave. */
export const AUDIT_SEARCH_MAX_EVENTS = 20_000;
