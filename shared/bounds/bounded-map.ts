/** Maps with a bounded number of entries. */

/**
 * Setting a key makes its entry the newest; when there are too many, the oldest are dropped. Reading changes nothing:
 * a cache that should keep what is used sets the entry again.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #maxEntries: number;

  constructor(maxEntries: number) {
    super();
    this.#maxEntries = maxEntries;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    dropOldest(this, this.#maxEntries);
    return this;
  }
}

/** The same bound for a Map that must be a plain one, because it is stored. */
export function dropOldest(map: Map<unknown, unknown>, maxEntries: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= maxEntries) return;
    map.delete(oldest);
  }
}
