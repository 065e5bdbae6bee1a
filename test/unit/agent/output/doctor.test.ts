import { expect, test } from "vitest";
import type { Report } from "../../../../agent/doctor/check.ts";
import { formatReport } from "../../../../agent/output/doctor.ts";

const REPORT: Report = {
  check: "local",
  status: "problem",
  tried: "connecting to http://localhost:3000, which is what a tunnel does",
  result: "nothing listens at http://localhost:3000 on this machine",
  advice: "Start the local server, or name the port that it listens on.",
};

test("the doctor's texts are wrapped at the width of the terminal, below their own beginning", () => {
  const lines = formatReport(REPORT, false, 60);
  expect(lines).toEqual([
    "problem Local server  nothing listens at",
    "                      http://localhost:3000 on this machine",
    "    tried: connecting to http://localhost:3000, which is",
    "           what a tunnel does",
    "    to do: Start the local server, or name the port that it",
    "           listens on.",
  ]);
});

test("in a file or a pipe, each of the doctor's texts is one line", () => {
  expect(formatReport(REPORT, false, undefined)).toHaveLength(3);
});
