/** Ranks the entries of the palette by what has been typed. */
import type { PaletteEntry, PaletteGroup } from "./entries.tsx";
import { scoreMatch } from "./fuzzy.ts";

const GROUP_MAX_ENTRIES = 6;
/** A match in the title counts more than one in the detail or the keywords. */
const OTHER_TEXT_WEIGHT = 0.5;

/** The best entries of each group; the group with the best entry comes first. */
export function searchPalette(groups: readonly PaletteGroup[], query: string): PaletteGroup[] {
  if (query.trim() === "") {
    return groups.filter(({ isSuggested, items }) => isSuggested === true && items.length > 0);
  }
  return groups
    .map((group) => ({ group, found: rank(group.items, query) }))
    .filter(({ found }) => found.length > 0)
    .toSorted((a, b) => b.found[0]!.score - a.found[0]!.score)
    .map(({ group, found }) => ({ ...group, items: found.map(({ entry }) => entry) }));
}

function rank(entries: readonly PaletteEntry[], query: string) {
  return entries
    .map((entry) => ({ entry, score: score(entry, query) }))
    .filter((found) => found.score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, GROUP_MAX_ENTRIES);
}

function score({ title, detail = "", keywords = "" }: PaletteEntry, query: string): number {
  const all = scoreMatch(`${title} ${detail} ${keywords}`, query);
  return Math.max(scoreMatch(title, query), OTHER_TEXT_WEIGHT * all);
}
