/** Which silence of a process means that it hangs. */
import { describe, expect, test } from "vitest";
import { HangDetector } from "../../../self-host/processes/watchdog.ts";

const SECOND_MS = 1_000;

interface Silence {
  seconds: number;
  canAnswer?: boolean;
  /** From one check to the next. */
  intervalMs?: number;
}

/** Checks once a second, unless `intervalMs` says otherwise. */
class Clock {
  readonly detector = new HangDetector();
  #nowMs = 0;

  /** @returns after how many checks the process was found to hang. */
  pass({ seconds, canAnswer = true, intervalMs = SECOND_MS }: Silence): number[] {
    const hangs: number[] = [];
    for (let check = 1; check <= seconds; check += 1) {
      this.#nowMs += intervalMs;
      if (this.detector.check(this.#nowMs, canAnswer)) hangs.push(check);
    }
    return hangs;
  }
}

function createAnswered(): Clock {
  const clock = new Clock();
  clock.pass({ seconds: 1 });
  clock.detector.recordAnswer();
  return clock;
}

test("a process that has not answered for a minute hangs, which is reported once a minute", () => {
  expect(createAnswered().pass({ seconds: 130 })).toEqual([60, 120]);
});

test("a process that answers late works", () => {
  const clock = createAnswered();
  for (let answer = 0; answer < 10; answer += 1) {
    expect(clock.pass({ seconds: 59 })).toEqual([]);
    clock.detector.recordAnswer();
  }
});

test("a process that has never answered can't be asked", () => {
  expect(new Clock().pass({ seconds: 600 })).toEqual([]);
});

describe("silence that something else explains does not count", () => {
  test("the process waits for its disk, or a debugger holds it", () => {
    const clock = createAnswered();
    expect(clock.pass({ seconds: 600, canAnswer: false })).toEqual([]);
    expect(clock.pass({ seconds: 59 })).toEqual([]);
  });

  test("the whole server was stopped for hours", () => {
    const clock = createAnswered();
    clock.pass({ seconds: 30 });
    expect(clock.pass({ seconds: 1, intervalMs: 5 * 3_600 * SECOND_MS })).toEqual([]);
    expect(clock.pass({ seconds: 59 })).toEqual([]);
  });

  test("the machine has so little CPU that the checks are late too", () => {
    expect(createAnswered().pass({ seconds: 600, intervalMs: 2_001 })).toEqual([]);
  });
});
