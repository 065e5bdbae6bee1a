/** How long a test waits for what must come. It only ends a wait in vain: a busy machine is no failure. */
export const PATIENCE_MS = 60_000;
/** For `vi.waitUntil` and `expect.poll`, which give up after a second by themselves. */
export const PATIENT = { timeout: PATIENCE_MS, interval: 25 };
