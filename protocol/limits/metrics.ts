/** What is counted of visitors' requests, in what steps, and for how long it is kept. */

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Upper bounds of the steps in which answers' times are counted; what took longer is one step more. */
export const LATENCY_BOUNDS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
] as const;

/** How long a tunnel's traffic is kept by the minute and by the hour: somewhat longer than it is shown. */
export const TRAFFIC_MINUTES_KEEP_MS = 2 * DAY_MS;
export const TRAFFIC_HOURS_KEEP_MS = 35 * DAY_MS;
/** Rows that one run of the scheduled job deletes in one statement. */
export const TRAFFIC_DELETE_BATCH_ROWS = 10_000;
/** The last report of a tunnel that has ended may be late by this much. */
export const COUNTERS_FOLD_AFTER_MS = DAY_MS;
/** Counters of ended tunnels that become their organization's in one statement. */
export const COUNTERS_FOLD_BATCH_ROWS = 500;
/** Tunnels that a scrape names one by one, the busiest first; totals are of all. */
export const SCRAPE_MAX_TUNNELS = 200;
