/**
 * Marks a response whose truncation the platform would hide. The edge keeps it visible by piping the body, and removes these
 * headers.
 */
export const SILENT_TRUNCATION_HEADER = "underpass-silent-truncation";
/** Stands for `Content-Encoding` up to the edge: the platform would decode the body of a response that has it, to pipe it. */
export const UNTOUCHED_ENCODING_HEADER = "underpass-content-encoding";

export function markSilentTruncation(headers: [name: string, value: string][]): void {
  headers.push([SILENT_TRUNCATION_HEADER, "1"]);
  for (const header of headers)
    if (header[0] === "content-encoding") header[0] = UNTOUCHED_ENCODING_HEADER;
}
