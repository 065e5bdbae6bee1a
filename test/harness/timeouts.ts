/** Limit of a wait for something that must happen. Long, so that a busy machine does not fail a test. */
export const WAIT_MAX_MS = 60_000;
/** For `vi.waitUntil` and `expect.poll`, whose default is one second. */
export const WAIT_OPTIONS = { timeout: WAIT_MAX_MS, interval: 25 };
