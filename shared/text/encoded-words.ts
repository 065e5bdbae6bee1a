/** Text in mail headers (RFC 2047): any text becomes ASCII, folded where it is long. */
import { toBase64, toUtf8 } from "../bytes.ts";

/** A line may have 76 characters, and the first one starts with the header's name. */
const PLAIN_MAX_CHARS = 60;
/** Together with its delimiters, 72 characters in base64. */
const WORD_MAX_BYTES = 45;

/** The result can neither end the header nor start another one. */
export function encodeHeader(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  const isPlain = /^[\x20-\x7e]*$/.test(line) && !line.includes("=?");
  return isPlain && line.length <= PLAIN_MAX_CHARS ? line : encodeWords(line);
}

/** A display name in front of an address: quoted or encoded, so that none of its characters has a meaning. */
export function encodeDisplayName(name: string): string {
  const text = encodeHeader(name);
  return text.startsWith("=?") ? text : `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** Split between characters, since each encoded word is decoded separately. */
function encodeWords(line: string): string {
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
