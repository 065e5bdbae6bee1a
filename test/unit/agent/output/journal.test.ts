import { closeSync, fstatSync, openSync } from "node:fs";
import { expect, test } from "vitest";
import { isJournal } from "../../../../agent/output/journal.ts";

test("the journal is the stream that systemd names by its device and inode", () => {
  const fd = openSync(import.meta.filename, "r");
  const { dev, ino } = fstatSync(fd, { bigint: true });
  expect(isJournal(fd, `${dev}:${ino}`)).toBe(true);
  expect(isJournal(fd, `${dev}:${ino + 1n}`)).toBe(false);
  expect(isJournal(fd, `${dev + 1n}:${ino}`)).toBe(false);
  for (const other of ["", ":", "1", `${dev}:`, `${dev}:${ino}:1`])
    expect(isJournal(fd, other)).toBe(false);
  // As in a container, and at a terminal.
  expect(isJournal(fd, undefined)).toBe(false);
  closeSync(fd);
  expect(isJournal(fd, `${dev}:${ino}`)).toBe(false);
});
