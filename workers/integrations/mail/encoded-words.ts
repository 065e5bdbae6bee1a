/** Text for a mail's header (RFC 2047): one line of ASCII whatever is in it, folded where it is long. */
import { toBase64, toUtf8 } from "../../../shared/bytes.ts";

/** A line may have 76 characters, and the name of its header is in front of the first one. */
const PLAIN_MAX_CHARS = 60;
/** As base64 with its frame, 72 characters. */
const WORD_MAX_BYTES = 45;

/** Nothing in it can end the header or begin another one. */
export function encodeHeader(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  const isPlain = /^[\x20-\x7e]*$/.test(line) && !line.includes("=?");
  return isPlain && line.length <= PLAIN_MAX_CHARS ? line : encodedWords(line);
}

/** A name before an address: quoted, or encoded, so that no character of it means anything. */
export function encodeDisplayName(name: string): string {
  const text = encodeHeader(name);
  return text.startsWith("=?") ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** Cut between characters: each word is decoded by itself. */
function encodedWords(line: string): string {
  const words: string[] = [];
  let word = "";
  for (const character of line) {
    if (toUtf8(word + character).byteLength > WORD_MAX_BYTES) {
      words.push(word);
      word = "";
    }
    word += character;
  }
  words.push(word);
  return words.map((text) => `=?UTF-8?B?${toBase64(toUtf8(text))}?=`).join("\r\n ");
}
