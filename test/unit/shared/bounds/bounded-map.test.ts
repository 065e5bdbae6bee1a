import { expect, test } from "vitest";
import { BoundedMap } from "../../../../shared/bounds/bounded-map.ts";

test("drops the entry that was set longest ago when there are too many", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("c", 3);
  expect([...map]).toEqual([
    ["b", 2],
    ["c", 3],
  ]);
});

test("an entry that is set again is the newest, one that is read is not", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2);
  map.get("b");
  map.set("a", 3).set("c", 4);
  expect([...map.keys()]).toEqual(["a", "c"]);
});
