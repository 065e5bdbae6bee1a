import fc from "fast-check";
import { expect, test } from "vitest";
import {
  readNewestFirst,
  type ReadNewest,
} from "../../../../../workers/api/inspector/newest-first.ts";

interface Row {
  summary: { id: string };
}

/** @param ids newest first. @param onRead called with the number of rows. */
function createList(ids: string[], onRead: (rows: number) => void): ReadNewest<Row> {
  return (limit, after) => {
    const rows = ids.filter((id) => after === undefined || id < after).slice(0, limit);
    onRead(rows.length);
    return Promise.resolve(rows.map((id) => ({ summary: { id } })));
  };
}

async function readIds(lists: ReadNewest<Row>[], limit: number): Promise<string[]> {
  const rows = await readNewestFirst(lists, limit);
  return rows.map(({ summary }) => summary.id);
}

function toId(time: number): string {
  return String(time).padStart(6, "0");
}

const descending = (one: string, other: string): number => (one < other ? 1 : -1);

test("finds the newest rows of any lists", async () => {
  const times = fc.uniqueArray(fc.nat(3_000), { maxLength: 400 });
  const busyFor = fc.integer({ min: 1, max: 1_000 });
  const sizes = fc.record({
    lists: fc.integer({ min: 1, max: 30 }),
    limit: fc.integer({ min: 1, max: 200 }),
  });
  await fc.assert(
    fc.asyncProperty(times, busyFor, sizes, async (all, span, { lists: count, limit }) => {
      const lists: string[][] = Array.from({ length: count }, () => []);
      // Each list has the rows of some spans of time, as tunnels that are busy at different times.
      for (const time of all) lists[Math.floor(time / span) % count]!.push(toId(time));
      const readers = lists.map((list) => createList(list.sort(descending), () => undefined));
      const expected = all.map(toId).sort(descending).slice(0, limit);
      expect(await readIds(readers, limit)).toEqual(expected);
    }),
    { seed: 16, numRuns: 300 },
  );
});

test("reads a fraction of the rows of many lists, also when one list has all of the newest", async () => {
  let rowsRead = 0;
  const lists = Array.from({ length: 100 }, (_, index) =>
    createList(
      Array.from({ length: 100 }, (_, row) => toId(index * 100 + 99 - row)),
      (rows) => (rowsRead += rows),
    ),
  );
  const newest = await readIds(lists, 100);
  expect([newest[0], newest.at(-1)]).toEqual([toId(9_999), toId(9_900)]);
  expect(rowsRead).toBeLessThanOrEqual(1_900);
});

test("reads a single list once", async () => {
  let reads = 0;
  const list = createList(["2", "1"], () => (reads += 1));
  expect(await readIds([list], 2)).toEqual(["2", "1"]);
  expect(reads).toBe(1);
});

test("without lists, there are no rows", async () => {
  expect(await readNewestFirst([], 10)).toEqual([]);
});
