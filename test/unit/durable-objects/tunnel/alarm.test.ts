import { afterEach, describe, expect, test, vi } from "vitest";
import {
  Alarm,
  computeNextAlarm,
  ALARM_RETRY_MAX_MS,
  ALARM_RETRY_MIN_MS,
} from "../../../../durable-objects/tunnel/alarm.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

describe("the alarm that the parts of an object share", () => {
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  test("is set to the earliest requested time", () => {
    expect(computeNextAlarm(null, 5)).toBe(5);
    expect(computeNextAlarm(9, 5)).toBe(5);
    expect(computeNextAlarm(5, 9)).toBeNull();
  });

  /** @param scheduledAtMs set by an earlier instance of the object. */
  function createAlarm(scheduledAtMs: number | null) {
    const set: number[] = [];
    const storage = {
      getAlarm: () => Promise.resolve(scheduledAtMs),
      setAlarm: (atMs: number | Date, _options?: DurableObjectSetAlarmOptions) =>
        Promise.resolve(void set.push(Number(atMs))),
    };
    return { alarm: new Alarm(storage), set, storage };
  }

  test("never fires later because another part requests a later time", async () => {
    const soon = Date.now() + 60_000;
    const { alarm, set } = createAlarm(soon);
    alarm.scheduleBy(soon + 5_000, "unconfirmed");
    alarm.scheduleBy(soon + 3_000, "unconfirmed");
    await Promise.resolve();
    expect(set).toEqual([]);
    alarm.scheduleBy(soon - 1_000, "unconfirmed");
    expect(set).toEqual([soon - 1_000]);
    alarm.scheduleBy(soon, "unconfirmed");
    alarm.markFired();
    alarm.scheduleBy(soon + 1, "unconfirmed");
    expect(set).toEqual([soon - 1_000, soon + 1]);
  });

  test("fires again soon after a failure, with an increasing wait, even if other parts request later times", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.spyOn(console, "error").mockReturnValue();
    const { alarm, set } = createAlarm(null);
    const week = 7 * 24 * 3600_000;
    const fire = async (work: () => Promise<void>) => {
      set.length = 0;
      alarm.markFired();
      await Promise.all([
        alarm.attempt(() => alarm.scheduleBy(Date.now() + week, "unconfirmed")),
        alarm.attempt(work),
      ]);
      return set.at(-1)! - Date.now();
    };
    const fail = () => Promise.reject(new Error("no database"));
    const waits: number[] = [];
    for (let i = 0; i < 6; i += 1) waits.push(await fire(fail));
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect([waits[0], waits[5]]).toEqual([ALARM_RETRY_MIN_MS, ALARM_RETRY_MAX_MS]);
    expect(await fire(() => Promise.resolve())).toBe(week);
    expect(await fire(fail)).toBe(ALARM_RETRY_MIN_MS);
  });

  test("fires at once when the stored time can't be read, and later requests are scheduled again", async () => {
    const logged = vi.spyOn(console, "error").mockReturnValue();
    const { alarm, set, storage } = createAlarm(null);
    storage.getAlarm = () => Promise.reject(new Error("no storage"));
    const later = Date.now() + 60_000;
    alarm.scheduleBy(later, "unconfirmed");
    await vi.waitUntil(() => set.length > 0, WAIT_OPTIONS);
    expect(set[0]).toBeLessThan(later);
    expect(JSON.parse(String(logged.mock.lastCall?.[0]))).toEqual({
      level: "error",
      event: "alarm_failed",
      cause: "Error: no storage",
    });
    alarm.markFired();
    alarm.scheduleBy(later, "unconfirmed");
    expect(set.at(-1)).toBe(later);
  });

  test("is set by the next request when it could not be set before", async () => {
    const logged = vi.spyOn(console, "error").mockReturnValue();
    const { alarm, set, storage } = createAlarm(null);
    const { setAlarm } = storage;
    storage.setAlarm = () => Promise.reject(new Error("no storage"));
    alarm.scheduleBy(Date.now(), "confirmed");
    await vi.waitUntil(() => logged.mock.calls.length > 0, WAIT_OPTIONS);
    storage.setAlarm = setAlarm;
    const later = Date.now() + 60_000;
    alarm.scheduleBy(later, "unconfirmed");
    await vi.waitUntil(() => set.length > 0, WAIT_OPTIONS);
    expect(set).toEqual([later]);
  });

  test("that must be on disk is, also when the stored time has to be read before", async () => {
    const { alarm, storage } = createAlarm(null);
    const set = vi.spyOn(storage, "setAlarm");
    const later = Date.now() + 60_000;
    alarm.scheduleBy(later + 1, "confirmed");
    alarm.scheduleBy(later, "unconfirmed");
    await vi.waitUntil(() => set.mock.calls.length > 0, WAIT_OPTIONS);
    expect(set.mock.calls).toEqual([[later, { allowUnconfirmed: false }]]);
  });

  test("is set at once for the current time", () => {
    const { alarm, set } = createAlarm(null);
    const now = Date.now();
    alarm.scheduleBy(now, "confirmed");
    expect(set).toEqual([now]);
  });
});
