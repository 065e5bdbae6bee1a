/** How well a text matches what a user types: whole words come before beginnings, and these before single letters. */

/** @returns 0 for no match; the better the match, the higher. Each word of the query must match. */
export function scoreMatch(text: string, query: string): number {
  const where = text.toLowerCase();
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const scores = words.map((word) => scoreWord(where, word));
  if (scores.includes(0)) return 0;
  return scores.reduce((sum, score) => sum + score, 0) / Math.max(scores.length, 1);
}

function scoreWord(text: string, word: string): number {
  const at = text.indexOf(word);
  if (at === 0) return text.length === word.length ? 1 : 0.9;
  if (at > 0) return startsWord(text, at) ? 0.8 : 0.6;
  return scoreLetters(text, word);
}

/** The letters in this order, with others between them: `rqs` in `requests`. The first one must start a word. */
function scoreLetters(text: string, word: string): number {
  let best = 0;
  for (let start = text.indexOf(word[0]!); start >= 0; start = text.indexOf(word[0]!, start + 1)) {
    if (!startsWord(text, start)) continue;
    let at = start;
    for (const letter of word.slice(1)) {
      at = text.indexOf(letter, at + 1);
      if (at < 0) return best;
    }
    best = Math.max(best, (0.5 * word.length) / (at - start + 1));
  }
  return best;
}

function startsWord(text: string, at: number): boolean {
  return at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!);
}
