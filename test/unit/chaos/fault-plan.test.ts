import { describe, expect, test } from "vitest";
import {
  describeFault,
  DISKS,
  PATHS,
  planFaults,
  PROCESSES,
} from "../../../chaos/faults/fault-plan.ts";
import { createRandom } from "../../harness/random.ts";

const plan = (seed: number, seconds = 600) =>
  planFaults(createRandom(seed), { seconds, gapSeconds: 6 });

describe("a plan of faults", () => {
  test("is the same for the same seed, and another for another seed", () => {
    expect(plan(7)).toEqual(plan(7));
    expect(plan(7)).not.toEqual(plan(8));
  });

  test("has every fault of every part within ten minutes", () => {
    const faults = plan(7).map(({ fault }) => fault);
    const killed = faults.flatMap((fault) => (fault.kind === "kill" ? [fault.process] : []));
    const frozen = faults.flatMap((fault) => (fault.kind === "freeze" ? [fault.path] : []));
    const filled = faults.flatMap((fault) => (fault.kind === "fill-disk" ? [fault.disk] : []));
    expect(new Set(killed)).toEqual(new Set(PROCESSES));
    expect(new Set(frozen)).toEqual(new Set(PATHS));
    expect(new Set(filled)).toEqual(new Set(DISKS));
    expect(faults.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["pause", "set-clock"]));
  });

  test("ends every fault before the end of the run", () => {
    for (const { atSeconds, fault } of plan(7, 60)) {
      expect(atSeconds + ("seconds" in fault ? fault.seconds : 0)).toBeLessThanOrEqual(60);
    }
  });

  test("can be printed, a line for each fault", () => {
    const lines = plan(7).map(({ fault }) => describeFault(fault));
    expect(lines).toContain("kill -9 of workerd");
    expect(lines.every((line) => line.length > 0 && !line.includes("undefined"))).toBe(true);
  });
});
