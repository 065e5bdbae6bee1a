import { afterEach, expect, test } from "vitest";
import { InterruptDetector } from "../../../agent/commands/npx/interrupt-detector.ts";

let detector: InterruptDetector | undefined;
afterEach(() => detector?.end());

/** A detector, and what Linux has counted. */
function createDetector() {
  const counts = { shell: 2, threads: [1, 40, 30] };
  detector = new InterruptDetector(() => {
    if (counts.shell < 0) throw new Error("ENOENT");
    const { shell, threads } = counts;
    return { shell, npmThreads: new Map(threads.map((count, at) => [String(at), count])) };
  });
  return { counts, detector };
}

test("detects that the shell alone has run, at the second look", () => {
  const { counts, detector } = createDetector();
  expect([detector.isDetected(), detector.isDetected()]).toEqual([false, false]);
  counts.shell += 1;
  expect([detector.isDetected(), detector.isDetected()]).toEqual([false, true]);
});

test("detects nothing when all threads of npm have run, too: the machine was suspended, or the job was stopped", () => {
  const { counts, detector } = createDetector();
  counts.shell += 2;
  counts.threads = counts.threads.map((count) => count + 2);
  expect([detector.isDetected(), detector.isDetected()]).toEqual([false, false]);
});

test("detects nothing when only some threads of npm have run", () => {
  const { counts, detector } = createDetector();
  counts.threads[1]! += 5;
  expect([detector.isDetected(), detector.isDetected()]).toEqual([false, false]);
});

test("detects nothing when this process was continued, which the shell is told, before or after a look", () => {
  const { counts, detector } = createDetector();
  counts.shell += 1;
  process.emit("SIGCONT");
  expect([detector.isDetected(), detector.isDetected()]).toEqual([false, false]);
  counts.shell += 1;
  expect(detector.isDetected()).toBe(false);
  process.emit("SIGCONT");
  expect([detector.isDetected(), detector.isDetected()]).toEqual([false, false]);
});

test("detects nothing when a process has ended", () => {
  const { counts, detector } = createDetector();
  counts.shell = -1;
  expect([detector.isDetected(), detector.isDetected()]).toEqual([false, false]);
});
