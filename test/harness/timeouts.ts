/** How long a test waits for what must come. It only ends a wait in vain: a busy machine is no failure. */
export const WAIT_MAX_MS = 60_000;
/** For `vi.waitUntil` and `expect.poll`, which give up after a second by themselves. */
export const WAIT_OPTIONS = { timeout: WAIT_MAX_MS, interval: 25 };
