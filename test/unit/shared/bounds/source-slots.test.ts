import { expect, test } from "vitest";
import { SourceSlots } from "../../../../shared/bounds/source-slots.ts";

function takeAll(slots: SourceSlots, source: string): number {
  let taken = 0;
  while (slots.take(source)) taken += 1;
  return taken;
}

test("one source gets half of the slots, and every further one half of the rest", () => {
  const slots = new SourceSlots(64);
  expect(["a", "b", "c"].map((source) => takeAll(slots, source))).toEqual([32, 16, 8]);
});

test("a freed slot can be taken again, by any source", () => {
  const slots = new SourceSlots(4);
  takeAll(slots, "a");
  slots.free("a");
  expect(slots.take("a")).toBe(true);
  slots.free("a");
  slots.free("a");
  expect(takeAll(slots, "b")).toBe(2);
});

test("slots that are in use after a hibernation count", () => {
  const slots = new SourceSlots(4);
  for (let i = 0; i < 4; i += 1) slots.add("a");
  expect([slots.take("a"), slots.take("b")]).toEqual([false, false]);
});
