/** The path of a request in a list: readable, and with a sign where the server has cut it. */
import { LISTED_PATH_MAX_CHARS } from "../../../protocol/limits.ts";
import { decodeLetters } from "../../../shared/text/percent-encoding.ts";

export function formatListedPath(path: string): string {
  return decodeLetters(path.length < LISTED_PATH_MAX_CHARS ? path : `${path}…`);
}
