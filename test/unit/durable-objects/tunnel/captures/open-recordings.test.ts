import { expect, test } from "vitest";
import { OpenRecordings } from "../../../../../durable-objects/tunnel/captures/open-recordings.ts";
import type { LongLivedRow } from "../../../../../durable-objects/tunnel/captures/record.ts";
import type { Recording } from "../../../../../durable-objects/tunnel/captures/recording.ts";

const toRow = (id: string, state: string) => ({ record: { id, state } }) as LongLivedRow;

test("of a thousand WebSockets that wake up, the row of one is read when it is needed, and once", () => {
  const read: string[] = [];
  const open = new OpenRecordings({
    readRow: (id) => {
      read.push(id);
      return toRow(id, "open");
    },
    resume: ({ record }) => ({ id: record.id }) as Recording,
  });
  for (let i = 0; i < 1_000; i++) open.addHibernated(`capture-${i}`);
  expect(read).toEqual([]);
  const recording = open.findLongLived("capture-7");
  expect(recording).toMatchObject({ id: "capture-7" });
  expect(open.findLongLived("capture-7")).toBe(recording);
  expect(read).toEqual(["capture-7"]);
  expect([open.isHibernated("capture-7"), open.isHibernated("capture-8")]).toEqual([false, true]);
});

test("a recording that ended before the hibernation, or whose row was deleted, does not continue", () => {
  const rows = new Map([["ended", toRow("ended", "complete")]]);
  const open = new OpenRecordings({
    readRow: (id) => rows.get(id),
    resume: ({ record }) => ({ id: record.id }) as Recording,
  });
  for (const id of ["ended", "deleted"]) {
    open.addHibernated(id);
    expect(open.findLongLived(id)).toBeUndefined();
  }
});
