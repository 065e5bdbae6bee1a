/** How well a text matches the words that a user types. */

/** The scores of one word, by where the text has it. */
const WHOLE_TEXT_SCORE = 1;
const TEXT_START_SCORE = 0.9;
const WORD_START_SCORE = 0.8;
const INSIDE_WORD_SCORE = 0.6;
/** For letters in the right order with others between them: the more others, the lower. */
const LETTERS_MAX_SCORE = 0.5;

/** @returns 0 to 1: the better the match, the higher. 0 for no match: each word of the query must match. */
export function scoreMatch(text: string, query: string): number {
  const where = text.toLowerCase();
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const scores = words.map((word) => scoreWord(where, word));
  if (scores.includes(0)) return 0;
  return scores.reduce((sum, score) => sum + score, 0) / Math.max(scores.length, 1);
}

function scoreWord(text: string, word: string): number {
  const at = text.indexOf(word);
  if (at === 0) return text.length === word.length ? WHOLE_TEXT_SCORE : TEXT_START_SCORE;
  if (at > 0) return startsWord(text, at) ? WORD_START_SCORE : INSIDE_WORD_SCORE;
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
    best = Math.max(best, (LETTERS_MAX_SCORE * word.length) / (at - start + 1));
  }
  return best;
}

function startsWord(text: string, at: number): boolean {
  return at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]!);
}
