import { expect, test } from "vitest";
import { reservePort, reservePorts } from "../../harness/ports.ts";

test("ranges of ports that are reserved concurrently do not overlap", async () => {
  const COUNT = 5;
  const firsts = await Promise.all(Array.from({ length: 8 }, () => reservePorts(COUNT)));
  const single = await reservePort();
  const ports = firsts.flatMap((first) => Array.from({ length: COUNT }, (_, at) => first + at));
  expect(new Set([...ports, single]).size).toBe(8 * COUNT + 1);
});
