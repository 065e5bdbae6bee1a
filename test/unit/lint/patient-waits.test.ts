/** Lint refuses waits that give up after a second. */
import { expect, test } from "vitest";
import { lintFiles } from "../../harness/lint.ts";

test("a wait in a test must have a time limit of its own", async () => {
  const lines = [
    "await vi.waitFor(() => check());",
    "await vi.waitFor(() => check(), WAIT_OPTIONS);",
    "await vi.waitUntil(() => check());",
    "await expect.poll(() => check()).toBe(1);",
    "await expect.poll(() => check(), WAIT_OPTIONS).toBe(1);",
  ];
  const violations = await lintFiles("underpass(patient-waits)", {
    "test/planted.test.ts": lines.join("\n"),
  });
  expect(violations.map(({ line }) => line).sort()).toEqual([1, 3, 4]);
});
