/** What a tunnel does for its requests: constants of the code, figures of benchmarks, and assumptions, each with its source. */
import { HEARTBEAT_INTERVAL_MS } from "../../protocol/limits.ts";

/** One object on Cloudflare serves about this many (developers.cloudflare.com/durable-objects/platform/limits). */
export const OBJECT_MAX_REQUESTS_PER_SECOND = 1_000;
/** What workerd needs for a request, edge and object together, with many in flight: `npm run bench -- requests` (ARCHITECTURE.md). */
export const CPU_MS_PER_REQUEST = 0.208;
/** Assumption: from the arrival of a request at the object to the end of its response. */
export const RESPONSE_SECONDS = 0.05;
/** Assumption: a small request is answered with one message of the agent. */
export const AGENT_MESSAGES_PER_REQUEST = 1;
/**
 * A capture is written this long after its response, or when this time has passed since the last write, and the timer keeps
 * the object awake (`captures/captures.ts`).
 */
export const CAPTURE_WRITE_SECONDS = 0.1;
export const CAPTURE_WRITE_INTERVAL_SECONDS = 1;
/** Many captures are written earlier. */
export const CAPTURES_PER_PAGE_MAX = 256;
/** A page, written once and deleted once; a large one has its details in a second row (`captures/capture-store.ts`). */
export const ROWS_PER_CAPTURE_PAGE = 2;
/** Assumption: a capture without bodies. */
export const CAPTURE_GB = 1e-6;
/** The plan's retention, and the most that an object stores (`captures/captures.ts`). */
export const CAPTURE_RETENTION_SECONDS = 7 * 24 * 3600;
export const CAPTURES_MAX_GB = 0.064;
/** A tunnel with traffic all the time reports this often, and sooner when `REPORT_MAX_REQUESTS` are unreported (`metrics/`). */
export const REPORT_SECONDS = 60;
export const REPORT_MAX_REQUESTS = 20_000;
/** The mark that it was reported, its alarm, and the alarm for the next expiry (a test counts them). */
export const ROWS_PER_REPORT = 3;
/** While a tunnel carries traffic, it saves its counters this often: one value. */
export const COUNTERS_SAVE_SECONDS = 5;
/** A save, and its alarm, which only traffic soon after the last save needs. */
export const ROWS_PER_SAVE = 1;
export const ROWS_PER_SAVE_ALARM = 1;
/** Assumption: how long a report to PostgreSQL keeps the object awake. */
export const REPORT_CALL_SECONDS = 0.05;
/** A batch of three statements for the counters, and a transaction for the spending (`store/tunnels/reports.ts`). */
export const TRANSACTIONS_PER_REPORT = 2;
/** What one PostgreSQL does through the gateway, on two cores with other work: ARCHITECTURE.md. */
export const DATABASE_TRANSACTIONS_PER_SECOND = 160;
/** How often a connected agent sends one. */
export const HEARTBEATS_PER_SECOND = 1000 / HEARTBEAT_INTERVAL_MS;
