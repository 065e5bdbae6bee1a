/** A set of prefixes that finds out in one pass over a text whether the text begins with one of them. */

export class Prefixes {
  /** In the order of their code units, so that those that begin alike are neighbours. None begins with another. */
  readonly #sorted: string[] = [];

  constructor(prefixes: Iterable<string>) {
    for (const prefix of [...new Set(prefixes)].sort()) {
      const previous = this.#sorted.at(-1);
      if (previous === undefined || !prefix.startsWith(previous)) this.#sorted.push(prefix);
    }
  }

  match(): PrefixMatch {
    return new PrefixMatch(this.#sorted);
  }
}

/** One text that is compared with a set of prefixes, code unit by code unit. */
class PrefixMatch {
  readonly #sorted: readonly string[];
  /** The prefixes from `#first` to before `#end` begin with the text so far. */
  #first = 0;
  #end: number;
  #length = 0;

  constructor(sorted: readonly string[]) {
    this.#sorted = sorted;
    this.#end = sorted.length;
  }

  /** The text begins with a prefix, whatever follows. */
  get isComplete(): boolean {
    return this.#first < this.#end && this.#sorted[this.#first]!.length === this.#length;
  }

  /** The rest of the text changes nothing. */
  get isDecided(): boolean {
    return this.#first === this.#end || this.#sorted[this.#first]!.length === this.#length;
  }

  /**
   * Takes more of the text. The bounds only approach each other: a whole walk costs the length of a prefix and their
   * number.
   */
  take(text: string): void {
    for (let at = 0; at < text.length && !this.isDecided; at++) this.#takeUnit(text.charCodeAt(at));
  }

  #takeUnit(unit: number): void {
    while (this.#first < this.#end && this.#getUnit(this.#first) < unit) this.#first += 1;
    while (this.#first < this.#end && this.#getUnit(this.#end - 1) > unit) this.#end -= 1;
    this.#length += 1;
  }

  #getUnit(index: number): number {
    return this.#sorted[index]!.charCodeAt(this.#length);
  }
}
