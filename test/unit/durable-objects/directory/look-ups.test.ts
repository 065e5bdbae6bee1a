import { afterEach, expect, test, vi } from "vitest";
import { HOUR_MS } from "../../../../shared/time.ts";
import {
  LOOK_UP_BATCH_NAMES,
  LOOK_UPS_PENDING_MAX,
  LookUps,
} from "../../../../durable-objects/directory/look-ups.ts";

afterEach(() => void vi.useRealTimers());

function newLookUps(known: Record<string, number> = {}) {
  const batches: string[][] = [];
  const lookUps = new LookUps((names) => {
    batches.push(names);
    const found = names.flatMap((name): [string, number][] =>
      known[name] === undefined ? [] : [[name, known[name]]],
    );
    return Promise.resolve(new Map(found));
  });
  return { lookUps, batches };
}

const names = (count: number, prefix = "name") =>
  Array.from({ length: count }, (_, at) => `${prefix}-${at}`);

test("concurrent look-ups share queries of a limited size, and each gets its own result", async () => {
  const { lookUps, batches } = newLookUps({ "name-7": 7, "name-399": 399 });
  const results = await Promise.all(names(400).map((name) => lookUps.find(name)));
  expect(results.filter((result) => result !== null)).toEqual([7, 399]);
  // The first name does not wait for others.
  expect(batches.map(({ length }) => length)).toEqual([1, LOOK_UP_BATCH_NAMES, 199]);
});

test("a name that is looked up twice at once is read once, one that was not found not again", async () => {
  const { lookUps, batches } = newLookUps();
  expect(await Promise.all([lookUps.find("a"), lookUps.find("a")])).toEqual([null, null]);
  expect(await lookUps.find("a")).toBeNull();
  expect(batches).toEqual([["a"]]);
});

test("more names than may wait are refused, and later ones are served", async () => {
  const { lookUps } = newLookUps({ later: 1 });
  const waiting = names(LOOK_UPS_PENDING_MAX).map((name) => lookUps.find(name));
  expect(await lookUps.find("later")).toBe("busy");
  await Promise.all(waiting);
  expect(await lookUps.find("later")).toBe(1);
});

test("only the newest thousand misses are remembered", async () => {
  const { lookUps, batches } = newLookUps();
  await lookUps.find("first");
  await Promise.all(names(LOOK_UPS_PENDING_MAX).map((name) => lookUps.find(name)));
  const before = batches.length;
  await lookUps.find(`name-${LOOK_UPS_PENDING_MAX - 1}`);
  expect(batches).toHaveLength(before);
  await lookUps.find("first");
  expect(batches).toHaveLength(before + 1);
});

test("a failed query fails its look-ups only", async () => {
  let isDown = true;
  const lookUps = new LookUps((batch: string[]) =>
    isDown
      ? Promise.reject(new Error("down"))
      : Promise.resolve(new Map(batch.map((name) => [name, 1]))),
  );
  await expect(lookUps.find("a")).rejects.toThrow("down");
  isDown = false;
  expect(await lookUps.find("a")).toBe(1);
});

test("after the clock was set back, names are looked up without delay, also those that were not found before", async () => {
  const known: Record<string, number> = {};
  const { lookUps } = newLookUps(known);
  expect(await lookUps.find("a")).toBeNull();
  known["a"] = 1;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - HOUR_MS });
  expect(await lookUps.find("a")).toBe(1);
});
