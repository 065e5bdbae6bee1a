/** `did you mean`: the known word that a mistyped one was most likely meant to be. */

/** @returns `; did you mean --json?`, or "" when no known word is similar. */
export function formatSuggestion(text: string, known: readonly string[]): string {
  const nearest = findNearest(text, known);
  return nearest === undefined ? "" : `; did you mean ${nearest}?`;
}

/** At most a third of the letters may be wrong, so that short words are not taken for each other. */
function findNearest(text: string, known: readonly string[]): string | undefined {
  const distances = known.map((word) => ({ word, distance: getDistance(text, word) }));
  const [nearest, next] = distances.sort((a, b) => a.distance - b.distance);
  // When two are equally near, neither is more likely.
  if (!nearest || next?.distance === nearest.distance) return undefined;
  const letters = Math.max(nearest.word.replace(/^-+/, "").length, 3);
  return nearest.distance <= Math.floor(letters / 3) ? nearest.word : undefined;
}

/**
 * The Damerau-Levenshtein distance (optimal string alignment): how many letters are inserted, deleted, replaced, or exchanged
 * with their neighbour.
 */
function getDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const isSame = a[row - 1] === b[column - 1];
      let cost = Math.min(
        previous[column]! + 1,
        current[column - 1]! + 1,
        previous[column - 1]! + (isSame ? 0 : 1),
      );
      const isExchanged = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (row > 1 && column > 1 && isExchanged) {
        cost = Math.min(cost, beforePrevious[column - 2]! + 1);
      }
      current.push(cost);
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[b.length]!;
}
