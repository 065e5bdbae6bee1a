/** The head of an HTTP/1.1 response as that of an HTTP/2 response. */
import type { OutgoingHttpHeaders } from "node:http2";
import { isConnectionField } from "./request-text.ts";

const FIELD = /\r\n([^:\r]+):[\t ]*([^\r]*)/g;

/**
 * @param text one character for each byte.
 * @returns the fields as `respond` takes them: each name followed by its value, and the status first.
 */
export function toResponseFields(status: number, text: string): string[] {
  const fields = [":status", String(status)];
  for (const [, name, value] of text.matchAll(FIELD)) {
    const lowerName = name!.toLowerCase();
    if (!isConnectionField(lowerName)) fields.push(lowerName, value!.trimEnd());
  }
  return fields;
}

/** The same for an informational response, as `additionalHeaders` takes them. */
export function toInformationalHeaders(status: number, text: string): OutgoingHttpHeaders {
  const headers = new Map<string, string[]>();
  const [, , ...fields] = toResponseFields(status, text);
  for (let index = 0; index < fields.length; index += 2) {
    const values = headers.get(fields[index]!) ?? [];
    headers.set(fields[index]!, [...values, fields[index + 1]!]);
  }
  return { ...Object.fromEntries(headers), ":status": status };
}
