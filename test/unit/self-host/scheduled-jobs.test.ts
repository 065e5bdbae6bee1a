import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ScheduledJobs } from "../../../self-host/workerd/scheduled-jobs.ts";
import { MINUTE_MS } from "../../../shared/time.ts";
import { silentLog } from "../../harness/directories.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("jobs that fail are counted, as is a run that gets no answer, and the next run follows", async () => {
  const warn = vi.fn();
  const run = vi.fn<() => Promise<number>>();
  run.mockResolvedValueOnce(2).mockRejectedValueOnce(new Error("no answer")).mockResolvedValue(0);
  const jobs = new ScheduledJobs({ run, log: { ...silentLog, warn } });
  await vi.advanceTimersByTimeAsync(3 * MINUTE_MS);
  jobs.stop();
  await vi.advanceTimersByTimeAsync(MINUTE_MS);
  expect(run.mock.calls).toHaveLength(3);
  expect(jobs.failed).toBe(3);
  expect(warn.mock.calls.flat()).toEqual([expect.stringContaining("no answer")]);
});

test("a run that takes longer than a minute is the only one", async () => {
  const run = vi.fn(() => new Promise<number>(() => undefined));
  const jobs = new ScheduledJobs({ run, log: silentLog });
  await vi.advanceTimersByTimeAsync(3 * MINUTE_MS);
  jobs.stop();
  expect(run.mock.calls).toHaveLength(1);
});
