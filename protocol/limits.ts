/**
 * Every bound of the service, its unit in its name. A number that two files must agree on, or that a
 * user can run into, is here and nowhere else.
 */

// ── Names ──

/** One DNS label (RFC 1035 §2.3.4). */
export const SUBDOMAIN_MAX_CHARS = 63;
export const TUNNEL_TTL_MIN_SECONDS = 60;
export const TUNNEL_TTL_MAX_SECONDS = 366 * 24 * 3600;

// ── Custom domains and reserved subdomains ──

/** The whole of a name (RFC 1035 §2.3.4), less what the proof stands under: `_svc-challenge.`. */
export const DOMAIN_MAX_CHARS = 253 - 15;
/** As it is typed, in any script. */
export const DOMAIN_INPUT_MAX_CHARS = 1_000;
/** Claims of an organization that wait to be verified. */
export const DOMAINS_UNVERIFIED_MAX = 100;
/** A claim that nobody verified is forgotten after this. */
export const DOMAIN_CLAIM_MAX_MS = 7 * 24 * 3600_000;
/** What a resolver is told that we take; DNS over HTTPS itself has no smaller bound than its messages. */
export const DNS_MESSAGE_MAX_BYTES = 4_096;
export const DNS_ANSWER_MAX_BYTES = 65_535;
export const DNS_LOOKUP_MAX_MS = 5_000;
/** One call to the API that makes custom hostnames. */
export const CUSTOM_HOSTNAME_CALL_MAX_MS = 8_000;
export const CUSTOM_HOSTNAME_ANSWER_MAX_BYTES = 256 * 1024;
/** Domains whose coming and going a tunnel remembers: what counts is the time that a route is cached. */
export const CUSTOM_HOSTS_MAX = 200;
/** How long a reserved subdomain that was given up is kept from others, whose visitors may be its old ones. */
export const RESERVATION_COOL_DOWN_MS = 24 * 3600_000;

// ── The wire between agent and tunnel ──

/** Header of a frame: type, flags, stream id, payload length. */
export const FRAME_HEADER_BYTES = 10;
/** Data is cut into frames of at most this: large enough to be fast, small enough to interleave. */
export const FRAME_DATA_MAX_BYTES = 64 * 1024;
/** No frame of any kind is larger. The platform accepts 128 KB of header lines. */
export const FRAME_MAX_BYTES = 512 * 1024;
/** A message carries one or more whole frames. */
export const WIRE_MESSAGE_MAX_BYTES = 1024 * 1024;
/** Under load an agent gathers frames for this long before it sends them as one message. */
export const WIRE_BATCH_MS = 1;
/** What either side may send on a stream beyond what the other has consumed. */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
/** The same for all the streams of a connection together, so that an object keeps within 128 MB. */
export const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;
/** This much of each stream is outside the connection's window: many stalled streams block none. */
export const STREAM_RESERVE_BYTES = 16 * 1024;
/** The receiver of a stream grants credit again once it has consumed this much. */
export const CREDIT_GRANT_BYTES = 128 * 1024;
/** The largest WebSocket message carried: what the platform itself accepts. */
export const SOCKET_MESSAGE_MAX_BYTES = 32 * 1024 * 1024;
/** What a visitor's WebSocket may have waiting for a slow local server before it is closed. */
export const SOCKET_BACKLOG_MAX_BYTES = 2 * SOCKET_MESSAGE_MAX_BYTES;
/** A fragmented WebSocket message must be whole within this time. */
export const SOCKET_MESSAGE_MAX_MS = 60_000;
export const HELLO_MAX_MS = 10_000;
export const HEARTBEAT_INTERVAL_MS = 5_000;
/** A peer that was silent for this long is gone, whatever TCP believes. */
export const HEARTBEAT_TIMEOUT_MS = 13_000;
export const CLOSE_REASON_MAX_BYTES = 123;

// ── Reconnecting ──

export const RECONNECT_MIN_MS = 500;
export const RECONNECT_MAX_MS = 5_000;
/** How often the agent of a stopped tunnel asks whether it was started again. */
export const STOPPED_RETRY_MIN_MS = 4_000;
export const STOPPED_RETRY_MAX_MS = 6_000;
/** How long a visitor's request waits for an agent that was there a moment ago. */
export const PARK_MAX_MS = 10_000;
export const PARK_MAX_REQUESTS = 256;
/** How long requests in flight get to finish when an agent or a server says it is going away. */
export const DRAIN_MAX_MS = 10_000;

// ── The local server behind the agent ──

export const ORIGIN_CONNECT_MAX_MS = 10_000;
/** Longer than any long poll (10 minutes) with time to spare. */
export const ORIGIN_RESPONSE_MAX_MS = 15 * 60_000;
/** Connections that an agent keeps to its local server at once. */
export const ORIGIN_CONNECTIONS_MAX = 1_024;
/** All header lines of an answer together, as the platform bounds them. */
export const ORIGIN_HEADERS_MAX_BYTES = 128 * 1024;

// ── The edge ──

export const ROUTE_CACHE_MAX_HOSTS = 10_000;
export const ROUTE_CACHE_HIT_MS = 60_000;
export const ROUTE_CACHE_MISS_MS = 2_000;
export const HOST_MAX_CHARS = 253;
/** What an object's answer may tell the edge of a tunnel's gates: the platform bounds header lines. */
export const GATES_HEADER_MAX_CHARS = 96 * 1024;
/** Tunnels whose gates an isolate remembers. */
export const GATES_CACHE_MAX_TUNNELS = 10_000;

// ── Before a tunnel: maintenance, passwords, policies ──

export const MAINTENANCE_MESSAGE_MAX_CHARS = 500;
export const MAINTENANCE_RETRY_MS = 30_000;
export const BASIC_AUTH_USERNAME_MAX_CHARS = 64;
export const BASIC_AUTH_PASSWORD_MIN_CHARS = 8;
/** An `Authorization` line that is longer holds no password. */
export const BASIC_CREDENTIALS_MAX_CHARS = 4_096;
/** Between two Argon2 hashes for visitors in one isolate: the rest of the time is for everybody else. */
export const PASSWORD_CHECK_INTERVAL_MS = 100;
/** How often whoever waits for a hash looks whether it is their turn. */
export const PASSWORD_CHECK_POLL_MS = 10;
/** Who has not looked for this long has left. */
export const PASSWORD_CHECK_GONE_MS = 1_000;
/** Passwords that wait to be hashed, in an isolate and for one of its tunnels. */
export const PASSWORD_CHECKS_MAX = 32;
export const PASSWORD_CHECKS_MAX_OF_TUNNEL = 8;
/** Wrong passwords of one source address for one tunnel, at once and then one each. */
export const WRONG_PASSWORD_BURST = 5;
export const WRONG_PASSWORD_REFILL_MS = 12_000;
/** What an isolate remembers of passwords: right ones, wrong ones, and who gave wrong ones. */
export const RIGHT_PASSWORDS_MAX = 10_000;
export const WRONG_PASSWORDS_MAX = 1_000;
export const WRONG_PASSWORD_ADDRESSES_MAX = 10_000;
/** Of each of the two lists of an identity gate. */
export const ALLOW_LIST_MAX_ENTRIES = 100;
/** How long a visitor who signed in may come back without doing so again. */
export const VISITOR_PASS_SECONDS = 12 * 3600;
/** From the provider's answer to the tunnel's own host: one redirect. */
export const VISITOR_TICKET_MAX_MS = 60_000;
/** Passes that an isolate remembers as good, and cookies of that name that it looks at in one request. */
export const VISITOR_PASSES_MAX = 10_000;
export const VISITOR_PASS_COOKIES_MAX = 4;
export const VISITOR_PASS_MAX_CHARS = 2_048;
export const POLICY_MAX_ACTIONS = 16;
export const POLICY_MAX_ISSUERS = 10;
export const POLICY_MAX_AUDIENCES = 20;
export const HEADER_NAME_MAX_CHARS = 256;
export const HEADER_VALUE_MAX_CHARS = 4_096;
export const PATH_PREFIX_MAX_CHARS = 512;
export const ISSUER_MAX_CHARS = 512;
export const AUDIENCE_MAX_CHARS = 512;
export const REQUESTS_PER_MINUTE_MAX = 1_000_000;
export const RATE_WINDOW_MS = 60_000;
/** Addresses that a minute counts one by one; those beyond it share a count. */
export const RATE_WINDOW_MAX_ADDRESSES = 50_000;
/** A count is saved in this many parts, of which only those that changed are written. */
export const RATE_WINDOW_PARTS = 64;
/** How long after a request its count may be in memory only. A restart forgets no more than this. */
export const RATE_SAVE_DELAY_MS = 200;
export const VISITOR_TOKEN_MAX_CHARS = 16 * 1024;
export const VISITOR_TOKEN_LEEWAY_SECONDS = 30;
/** Tokens that an isolate remembers as good, each until it ends or its issuer's keys are asked for again. */
export const VISITOR_TOKENS_MAX = 10_000;
export const ISSUER_CALL_MAX_MS = 5_000;
export const ISSUER_DOCUMENT_MAX_BYTES = 256 * 1024;
/** How long an isolate believes what an issuer said of its keys. */
export const ISSUER_KEYS_MAX_MS = 10 * 60_000;
/** A token that names an unknown key makes us ask again, but no more often than this. */
export const ISSUER_ASK_AGAIN_MS = 60_000;
/** How long an issuer that did not answer is left alone. */
export const ISSUER_DOWN_MS = 5_000;
export const ISSUERS_CACHE_MAX = 1_000;

// ── Usage ──

/** A tunnel's counters reach its row within this time while it carries traffic. */
export const USAGE_REPORT_INTERVAL_MS = 5_000;
/** How soon a tunnel whose time is over asks its row again, when that was not to be had. */
export const END_RETRY_MS = 200;
/** When a tunnel does again what failed: from the first of these on, each time after twice as long. */
export const ALARM_RETRY_MIN_MS = 5_000;
export const ALARM_RETRY_MAX_MS = 60_000;

// ── Accounts ──

export const EMAIL_MAX_CHARS = 254;
export const PASSWORD_MIN_CHARS = 12;
export const PASSWORD_MAX_BYTES = 1_024;
export const EMAIL_CODE_DIGITS = 6;
export const EMAIL_CODE_MAX_MS = 10 * 60_000;
export const EMAIL_CODE_MAX_ATTEMPTS = 5;
/** Guesses at the codes of one address, however often another one is asked for. */
export const EMAIL_CODE_HOURLY_MAX_GUESSES = 20;
export const EMAIL_CODE_GUESSES_WINDOW_MS = 3600_000;
export const ACCESS_TOKEN_SECONDS = 15 * 60;
/** A page renews its token this long before it ends. */
export const ACCESS_TOKEN_RENEW_EARLY_SECONDS = 60;
/** Access tokens whose signature an isolate remembers. */
export const VERIFIED_TOKENS_MAX = 1_000;
export const REFRESH_TOKEN_MS = 30 * 24 * 3600_000;
/** Two tabs that refresh at once are not a theft. */
export const REFRESH_GRACE_MS = 10_000;
/** While a session is used, its row says when, to this precision. */
export const SESSION_SEEN_MS = 60_000;
export const AUTH_RATE_BURST = 5;
export const AUTH_RATE_REFILL_MS = 12_000;
export const PASSWORD_RESET_MAX_MS = 3600_000;
/** Unused reset tokens of one account; further requests send nothing until the oldest ends. */
export const PASSWORD_RESETS_MAX = 3;
export const MFA_CHALLENGE_MAX_MS = 5 * 60_000;
export const MFA_CHALLENGE_MAX_ATTEMPTS = 5;
/** Wrong codes of an account, whatever the challenge: a new password login starts no new count. */
export const MFA_ACCOUNT_MAX_ATTEMPTS = 10;
export const MFA_ACCOUNT_WINDOW_MS = 3600_000;
export const TOTP_STEP_SECONDS = 30;
export const TOTP_DIGITS = 6;
/** Steps that a clock may be off, each way. */
export const TOTP_DRIFT_STEPS = 1;
/** What RFC 4226 §4 recommends, the least that it allows, and more than anybody uses. */
export const TOTP_SECRET_BYTES = 20;
export const TOTP_SECRET_MIN_BYTES = 16;
export const TOTP_SECRET_MAX_BYTES = 128;
/** How long a secret that was shown waits to be confirmed. */
export const MFA_ENROLLMENT_MAX_MS = 15 * 60_000;
export const RECOVERY_CODES = 10;
/** 80 random bits. */
export const RECOVERY_CODE_CHARS = 16;
/** How long a person may take at an identity provider. */
export const PROVIDER_SIGN_IN_MAX_MS = 10 * 60_000;
/** Where a sign-in leads back to: it travels in a cookie, of which browsers keep 4 KiB. */
export const RETURN_TO_MAX_CHARS = 2_000;
/** One call to a provider, its body included. */
export const PROVIDER_CALL_MAX_MS = 10_000;
export const PROVIDER_ANSWER_MAX_BYTES = 256 * 1024;
/** How long an isolate believes what a provider said of itself. */
export const PROVIDER_METADATA_MAX_MS = 10 * 60_000;
export const PROVIDER_CLOCK_TOLERANCE_SECONDS = 30;
export const PROVIDER_SUBJECT_MAX_CHARS = 255;
export const ORGANIZATION_NAME_MAX_CHARS = 100;
/** Organizations that one person owns. */
export const ORGANIZATIONS_OWNED_MAX = 20;
export const INVITATION_MAX_MS = 7 * 24 * 3600_000;
export const INVITATIONS_OPEN_MAX = 100;
/** Mails to people who did not ask for them, of one organization. */
export const INVITATIONS_DAILY_MAX = 200;
export const DEVICE_CODE_MAX_MS = 10 * 60_000;
export const DEVICE_POLL_INTERVAL_SECONDS = 2;
export const API_BODY_MAX_BYTES = 1024 * 1024;
/** Rows in one answer of a list; `after` leads to the rest. */
export const LIST_MAX_ROWS = 1_000;
export const LABEL_MAX_CHARS = 100;
export const DEVICE_NAME_MAX_CHARS = 200;
/** A sign-up that nobody confirmed frees its address after this. */
export const UNVERIFIED_ACCOUNT_MAX_MS = 7 * 24 * 3600_000;

// ── What must be told after a change ──

/** Until then the request that wrote the row is the one that delivers it. */
export const OUTBOX_LEASE_MS = 30_000;
export const OUTBOX_RETRY_MIN_MS = 30_000;
export const OUTBOX_RETRY_MAX_MS = 3600_000;
export const OUTBOX_BATCH_ROWS = 100;
/** One statement: PostgreSQL takes 65,535 values in it. */
export const INSERT_MAX_ROWS = 1_000;
/** A mail server that has not taken a mail by then is given up, before anybody else tries the same mail. */
export const MAIL_DELIVERY_MAX_MS = 25_000;
/** Mails that the scheduled job sends at once: Workers open six connections. */
export const MAIL_BATCH_ROWS = 5;
/** Later, nobody waits for this mail any longer: the codes in it are dead. */
export const OUTBOX_MAIL_MAX_MS = 24 * 3600_000;
/** A row that says "connected" and is older than this is asked after. */
export const TUNNEL_NEWS_FRESH_MS = 15_000;
export const TUNNEL_CONFIRM_MAX_ROWS = 100;
/** Tunnels that one run of the scheduled job lets expire in one transaction. */
export const EXPIRY_BATCH_ROWS = 100;
/** Secrets of accounts that are read at a time to be put under another key. */
export const RESEAL_BATCH_ROWS = 100;
/** Dead sessions, codes and tokens' rows are kept this long for whoever asks what happened. */
export const DEAD_ROW_KEEP_MS = 30 * 24 * 3600_000;

// ── Capability tokens ──

export const TOKEN_NAME_MAX_CHARS = 100;
export const TOKEN_BYTES_MAX = 16 * 1024;
export const TOKEN_TTL_DEFAULT_HOURS = 24;
export const TOKEN_TTL_MAX_HOURS = 366 * 24;
export const TOKEN_BANDWIDTH_DEFAULT_MBPS = 100;
export const TOKEN_TUNNELS_DEFAULT = 5;
export const TOKEN_SUBDOMAINS_MAX = 100;
/** How far ahead of its token's rate a tunnel may run, so that what is rare never waits. */
export const PACE_BURST_MS = 200;
export const MASTER_KEY_TTL_DEFAULT_DAYS = 90;
export const MASTER_KEY_TTL_MAX_DAYS = 365;
/** Tokens of a project, minted by a machine with a master key and by a person. */
export const PROJECT_TOKEN_BY_MASTER_HOURS = 1;
export const PROJECT_TOKEN_BY_PERSON_HOURS = 24;
export const PROJECT_NAME_MAX_CHARS = 100;
export const MONTHLY_BUDGET_MAX_USD_CENTS = 1_000_000_000;
export const CLI_TOKEN_DAYS = 90;
export const CLI_TOKEN_TUNNELS = 100;
export const CLI_TOKEN_BANDWIDTH_MBPS = 10_000;
/** How often a random name is drawn before giving up: one collision is rare, three say something else. */
export const RANDOM_NAME_MAX_TRIES = 3;

// ── The self-hosted server ──

/** Connections to PostgreSQL that single queries share, and those lent to transactions. */
export const GATEWAY_QUERY_CONNECTIONS = 10;
export const GATEWAY_SESSION_CONNECTIONS = 10;
/** How long a query or a transaction waits for one of them. */
export const GATEWAY_CONNECTION_WAIT_MS = 10_000;
/** Statements that each connection keeps prepared; the least recently used goes first. */
export const GATEWAY_PREPARED_MAX_STATEMENTS = 200;
export const GATEWAY_REQUEST_MAX_BYTES = 10 * 1024 * 1024;
export const GATEWAY_BATCH_MAX_QUERIES = 1_000;
/** Before the password was right a client may send this much. */
export const GATEWAY_STARTUP_MAX_BYTES = 16 * 1024;
export const GATEWAY_STARTUP_MAX_MS = 10_000;
/** Answers of PostgreSQL that wait for a slow client, before PostgreSQL itself has to. */
export const GATEWAY_BACKLOG_MAX_BYTES = 1024 * 1024;
export const MAIL_FILE_NAME_MAX_CHARS = 80;
export const DATABASE_CONNECT_MAX_MS = 10_000;
/** How long a part of the server gets to come up, crash recovery of the database included. */
export const CHILD_READY_MAX_MS = 60_000;
export const CHILD_STOP_MAX_MS = 10_000;
/** workerd keeps running while any socket is open: after the drain there is nothing to wait for. */
export const WORKERD_STOP_MAX_MS = 3_000;
/** It takes leave of its agents. */
export const RELAY_STOP_MAX_MS = 5_000;
/** A server that starts waits so long for its relay before it says that it listens. */
export const RELAY_CONNECTED_MAX_MS = 5_000;
export const CHILD_RESTART_MIN_MS = 200;
export const CHILD_RESTART_MAX_MS = 5_000;
/** A child that ran for this long starts again with the shortest wait. */
export const CHILD_SETTLED_MS = 30_000;
export const CRON_INTERVAL_MS = 60_000;
