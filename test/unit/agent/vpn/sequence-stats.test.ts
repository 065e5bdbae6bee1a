/** Loss, reordering and duplicates, from sequence numbers. */
import { expect, test } from "vitest";
import { SequenceStats } from "../../../../agent/relay-client/sequence-stats.ts";

function count(sequences: Iterable<number>): SequenceStats {
  const stats = new SequenceStats();
  for (const sequence of sequences) stats.count(sequence & 0xffff);
  return stats;
}
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

test("before the first datagram nothing is known", () => {
  expect(count([]).getQuality()).toEqual({
    received: 0,
    loss: null,
    reordered: null,
    duplicates: 0,
  });
});

test("a sequence without gaps has no loss, also across the wraparound", () => {
  const quality = count(range(65_000, 70_000)).getQuality();
  expect(quality).toEqual({ received: 5_000, loss: 0, reordered: 0, duplicates: 0 });
});

test("missing datagrams are lost, late ones are not", () => {
  const received = range(0, 1_000).filter((n) => n % 10 !== 5);
  expect(count(received).getQuality().loss).toBeCloseTo(0.1, 2);
  const swapped = [0, ...range(2, 1_002).map((n) => (n ^ 1) - 1)];
  expect(count(swapped).getQuality()).toMatchObject({ received: 1_001, loss: 0, duplicates: 0 });
  expect(count(swapped).getQuality().reordered).toBeCloseTo(0.5, 2);
});

test("a duplicate counts once, also a late one", () => {
  // The 0 is older than the first, so it may have been counted before a restart.
  expect(count([1, 0, 2, 2, 3, 2, 4, 1]).getQuality()).toEqual({
    received: 4,
    loss: 0,
    reordered: 0,
    duplicates: 3,
  });
});

test("counts are dropped after a minute", () => {
  const stats = count([1, 2, 9]);
  for (let bucket = 0; bucket < 11; bucket += 1) stats.advance();
  expect(stats.getQuality().loss).toBeCloseTo(6 / 9);
  stats.advance();
  expect(stats.getQuality().loss).toBe(null);
});

test("a restart of the sender is no loss", () => {
  const stats = count(range(0, 100));
  stats.restart();
  stats.count(40_000);
  stats.count(40_001);
  expect(stats.getQuality()).toMatchObject({ received: 102, loss: 0 });
  expect(count([10, 11, 40_000, 40_001]).getQuality().loss).toBe(0);
});
