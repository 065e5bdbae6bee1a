/** The path of a request in a list, with a sign where the server has cut it. */
import { LISTED_PATH_MAX_CHARS } from "../../../protocol/limits.ts";

export function formatListedPath(path: string): string {
  return path.length < LISTED_PATH_MAX_CHARS ? path : `${path}…`;
}
