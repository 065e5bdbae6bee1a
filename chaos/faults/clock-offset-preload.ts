/**
 * Loaded before a Node.js program (`--import`): on SIGUSR2 the program's wall clock is set to the offset that the file
 * `CLOCK_OFFSET_FILE` holds, in milliseconds. Timers and `performance.now()` continue, as after a real change of the
 * system's time. Child processes read the same file when they get the signal.
 */
import { readFileSync } from "node:fs";

const SystemDate = Date;
let offsetMs = 0;

class OffsetDate extends SystemDate {
  constructor(...args: [] | [number]) {
    if (args.length === 0) super(OffsetDate.now());
    else super(...args);
  }

  static override now(): number {
    return SystemDate.now() + offsetMs;
  }
}

Object.assign(globalThis, { Date: OffsetDate });
process.on("SIGUSR2", () => {
  offsetMs = Number(readFileSync(process.env.CLOCK_OFFSET_FILE ?? "", "utf8"));
});
