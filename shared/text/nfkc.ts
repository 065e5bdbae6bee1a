/** Longer than every text that is accepted once it is normalized: four characters can become one. */
const NORMALIZED_MAX_CHARS = 4 * 1024;

/** Unicode's form NFKC. A longer text is returned unchanged, because a megabyte of some characters takes half a second. */
export function toNfkc(text: string): string {
  return text.length > NORMALIZED_MAX_CHARS ? text : text.normalize("NFKC");
}
