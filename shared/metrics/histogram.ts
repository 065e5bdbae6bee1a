/** @returns the index of the bucket that counts the value; `bounds.length` for one above the last bound. */
export function findBucket(bounds: readonly number[], value: number): number {
  let bucket = 0;
  while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
  return bucket;
}
