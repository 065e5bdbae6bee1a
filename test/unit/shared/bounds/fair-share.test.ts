import fc from "fast-check";
import { expect, test } from "vitest";
import { FairShare } from "../../../../shared/bounds/fair-share.ts";

function takeAll(share: { take(amount: number): boolean }): number {
  let taken = 0;
  while (share.take(1)) taken += 1;
  return taken;
}

test("a single holder gets half, and each further one half of what is free", () => {
  const pool = new FairShare(1_024);
  const taken = Array.from({ length: 4 }, () => takeAll(pool.createShare()));
  expect(taken).toEqual([512, 256, 128, 64]);
});

test("holders that take turns get equal parts, and one part stays free", () => {
  const pool = new FairShare(1_000);
  const shares = Array.from({ length: 9 }, () => pool.createShare());
  while (shares.filter((share) => share.take(1)).length > 0);
  expect(shares.map(({ held }) => held)).toEqual(Array<number>(9).fill(100));
  expect(takeAll(pool.createShare())).toBe(50);
});

test("a returned amount is free again", () => {
  const pool = new FairShare(100);
  const share = pool.createShare();
  expect(share.take(51)).toBe(false);
  expect(share.take(50)).toBe(true);
  expect(share.isFull).toBe(true);
  share.add(-50);
  expect([share.held, pool.used, share.isFull]).toEqual([0, 0, false]);
  expect(share.take(50)).toBe(true);
});

test("whatever holders take and return, the total is never exceeded, and a new holder gets something", () => {
  const step = fc.tuple(fc.nat(5), fc.integer({ min: -40, max: 40 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const pool = new FairShare(1_000);
      const shares = Array.from({ length: 6 }, () => pool.createShare());
      for (const [index, amount] of steps) {
        const share = shares[index]!;
        if (amount > 0) share.take(amount);
        else share.add(-Math.min(share.held, -amount));
        expect(pool.used).toBe(shares.reduce((sum, { held }) => sum + held, 0));
        expect(pool.used).toBeLessThan(1_000);
      }
      expect(pool.createShare().take(1)).toBe(true);
    }),
    { seed: 5 },
  );
});
