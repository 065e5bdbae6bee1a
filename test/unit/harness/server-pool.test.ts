import { expect, test } from "vitest";
import { claimNames } from "../../harness/server/server-pool.ts";

test("a name that two files use fails the second one, and a file may use its own again", () => {
  const fileByName = new Map<string, string>();
  claimNames(fileByName, "test/a.test.ts", ["shop", "desk"]);
  claimNames(fileByName, "test/a.test.ts", ["shop"]);
  expect(() => claimNames(fileByName, "test/b.test.ts", ["room", "shop"])).toThrow(
    "test/b.test.ts uses the name shop, and so does test/a.test.ts",
  );
});
