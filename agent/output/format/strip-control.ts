import { stripVTControlCharacters } from "node:util";

/** Removes control characters: text from elsewhere must not move the cursor. */
export function stripControl(text: string): string {
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, "");
}
