/**
 * The ways in which servers read an ambiguous path. They differ in what they decode before they split segments, in
 * whether `;` and `\` are special, and in whether empty segments count. No order of these steps covers the others:
 * `/a/%2e%2e/../b` is `/b` to a server that decodes first and `/a/b` to one that resolves first.
 */
import { MEANING, PathText, type Meaning } from "./path-text.ts";
import type { Prefixes } from "./prefixes.ts";

interface Server {
  /** Which encoded characters are decoded before segments are split. The others are decoded afterwards, or not at all. */
  decodesFirst: "none" | "all_but_slashes" | "all";
  /** `\` separates segments. */
  splitsAtBackslashes: boolean;
  /** `;` and what follows it in a segment are parameters, which are not part of the path. */
  hasParameters: boolean;
}

const DECODINGS = ["none", "all_but_slashes", "all"] as const;
const NO_OR_YES = [false, true];

/** Whether slashes that follow each other count as several or as one. */
type Slashes = "kept" | "merged";

/** All readings of a path. The path is read once, and each reading stores only where its segments begin. */
export class Readings {
  readonly #readings: Reading[];
  readonly #text: PathText;

  constructor(path: string) {
    this.#readings = listServers(path).map((server) => new Reading(server, path.length));
    this.#text = new PathText(path, (meaning, isEncoded) => {
      for (const reading of this.#readings) reading.addToken(meaning, isEncoded);
    });
    for (const reading of this.#readings) reading.finish();
  }

  /** Whether a server could take the path for one that begins with any of these prefixes. */
  isDenied(prefixes: Prefixes): boolean {
    return this.#readings.some((reading) => reading.isDenied(prefixes, this.#text));
  }
}

/** The servers that read this path differently: `\` makes a difference only for a path that has one. */
function listServers(path: string): Server[] {
  const decodings = path.includes("%") ? DECODINGS : (["none"] as const);
  const backslashes = /\\|%(?:u00)?5c/i.test(path) ? NO_OR_YES : [false];
  const parameters = /;|%(?:u00)?3b/i.test(path) ? NO_OR_YES : [false];
  return decodings.flatMap((decodesFirst) =>
    backslashes.flatMap((splitsAtBackslashes) =>
      parameters.map((hasParameters) => ({ decodesFirst, splitsAtBackslashes, hasParameters })),
    ),
  );
}

class Reading {
  readonly #server: Server;
  /** What plain and encoded tokens mean to the server, by what they mean once they are decoded. */
  readonly #plain: readonly Meaning[];
  readonly #encoded: readonly Meaning[];
  /** Where the segments begin that remain when dots are resolved (RFC 3986 §5.2.4). Empty segments count. */
  readonly #resolved: Stack;
  /** The same, when empty segments are removed before dots are resolved. */
  readonly #merged: Stack;
  #at = 0;
  /** The current segment. Its length and its dots do not include parameters. */
  #start = 0;
  #length = 0;
  #dots = 0;
  #isInParameters = false;

  constructor(server: Server, maxTokens: number) {
    const { decodesFirst, splitsAtBackslashes, hasParameters } = server;
    this.#server = server;
    const plain: Meaning[] = [];
    plain[MEANING.other] = MEANING.other;
    plain[MEANING.dot] = MEANING.dot;
    plain[MEANING.slash] = MEANING.slash;
    plain[MEANING.backslash] = splitsAtBackslashes ? MEANING.slash : MEANING.other;
    plain[MEANING.semicolon] = hasParameters ? MEANING.semicolon : MEANING.other;
    this.#plain = plain;
    const encoded = decodesFirst === "none" ? plain.map(() => MEANING.other) : [...plain];
    if (decodesFirst === "all_but_slashes") encoded[MEANING.slash] = MEANING.other;
    this.#encoded = encoded;
    this.#resolved = new Stack(maxTokens);
    this.#merged = new Stack(maxTokens);
  }

  addToken(ownMeaning: Meaning, isEncoded: boolean): void {
    const meaning = (isEncoded ? this.#encoded : this.#plain)[ownMeaning];
    this.#at += 1;
    if (meaning === MEANING.slash) this.#endSegment(false);
    else if (meaning === MEANING.semicolon) this.#isInParameters = true;
    else if (!this.#isInParameters) {
      this.#length += 1;
      if (meaning === MEANING.dot) this.#dots += 1;
    }
  }

  /** Called after the last token. */
  finish(): void {
    this.#endSegment(true);
  }

  isDenied(prefixes: Prefixes, text: PathText): boolean {
    // A server that resolves before it decodes may also compare without decoding.
    const isUndecodedToo = this.#server.decodesFirst === "none" && text.isEncoded.includes(true);
    const spellings = isUndecodedToo ? [text.decoded, text.sent] : [text.decoded];
    return spellings.some(
      (spelling) =>
        this.#matchAll(prefixes, text, spelling, "kept") ||
        this.#matchAll(prefixes, text, spelling, "merged") ||
        this.#matchStack(prefixes, text, spelling, { segments: this.#resolved, slashes: "kept" }) ||
        this.#matchStack(prefixes, text, spelling, {
          segments: this.#resolved,
          slashes: "merged",
        }) ||
        this.#matchStack(prefixes, text, spelling, { segments: this.#merged, slashes: "kept" }),
    );
  }

  /** @param isLast whether the path ends here. */
  #endSegment(isLast: boolean): void {
    const isDots = this.#length === this.#dots && (this.#dots === 1 || this.#dots === 2);
    if (isDots) {
      if (this.#dots === 2) {
        this.#resolved.pop();
        this.#merged.pop();
      }
      // Dots at the end leave a slash: an empty segment, which begins where the path ends.
      if (isLast) {
        this.#resolved.push(this.#at);
        this.#merged.push(this.#at);
      }
    } else {
      this.#resolved.push(this.#start);
      if (this.#length > 0 || this.#start === 0 || isLast) this.#merged.push(this.#start);
    }
    this.#start = this.#at;
    this.#length = 0;
    this.#dots = 0;
    this.#isInParameters = false;
  }

  #getMeaning(text: PathText, at: number): Meaning {
    return (text.isEncoded[at] ? this.#encoded : this.#plain)[text.meanings[at]!]!;
  }

  /** @returns whether the path, with dots as they are, begins with a prefix. */
  #matchAll(prefixes: Prefixes, text: PathText, spelling: string[], slashes: Slashes): boolean {
    const match = prefixes.match();
    let isAfterSlash = false;
    let isInParameters = false;
    for (let at = 0; at < spelling.length && !match.isDecided; at++) {
      const meaning = this.#getMeaning(text, at);
      if (meaning === MEANING.slash) {
        if (slashes === "kept" || !isAfterSlash) match.take("/");
        isAfterSlash = true;
        isInParameters = false;
      } else if (meaning === MEANING.semicolon) isInParameters = true;
      else if (!isInParameters) {
        match.take(spelling[at]!);
        isAfterSlash = false;
      }
    }
    return match.isComplete;
  }

  /** @returns whether these segments begin with a prefix. */
  #matchStack(
    prefixes: Prefixes,
    text: PathText,
    spelling: string[],
    { segments, slashes }: { segments: Stack; slashes: Slashes },
  ): boolean {
    const match = prefixes.match();
    const last = segments.length - 1;
    for (let index = 0; index <= last && !match.isDecided; index++) {
      const start = segments.get(index);
      if (index > 0) {
        if (slashes === "merged" && index < last && this.#isSegmentEnd(text, start)) continue;
        match.take("/");
      }
      for (let at = start; !match.isDecided && !this.#isSegmentEnd(text, at); at++) {
        match.take(spelling[at]!);
      }
    }
    return match.isComplete;
  }

  /** Whether the text of a segment, without its parameters, ends before this token. */
  #isSegmentEnd(text: PathText, at: number): boolean {
    if (at >= text.meanings.length) return true;
    const meaning = this.#getMeaning(text, at);
    return meaning === MEANING.slash || meaning === MEANING.semicolon;
  }
}

/** A stack of bounded size. Its first entry is never removed: `..` does not lead above the root. */
class Stack {
  readonly #entries: Uint16Array;
  length = 0;

  constructor(maxTokens: number) {
    // A path of n tokens has at most n + 1 segments, and dots at its end count as one more.
    this.#entries = new Uint16Array(maxTokens + 2);
  }

  get(index: number): number {
    return this.#entries[index]!;
  }

  push(entry: number): void {
    this.#entries[this.length] = entry;
    this.length += 1;
  }

  pop(): void {
    if (this.length > 1) this.length -= 1;
  }
}
