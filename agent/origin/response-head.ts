/** The head of the local server's response, as the tunnel takes it. */
import { RESPONSE_HEAD_MAX_BYTES, RESPONSE_HEADERS_MAX } from "../../protocol/limits.ts";

/**
 * @param pairs names and values of the headers in turn.
 * @returns the payload of the response's frame, or why the tunnel would refuse it.
 */
export function encodeResponseHead(
  status: number,
  pairs: string[],
): { payload: string } | { problem: string } {
  const count = pairs.length / 2;
  if (count > RESPONSE_HEADERS_MAX)
    return {
      problem: `the local server's response has ${count} headers; a tunnel forwards at most ${RESPONSE_HEADERS_MAX}`,
    };
  const payload = JSON.stringify([status, ...pairs]);
  if (Buffer.byteLength(payload) > RESPONSE_HEAD_MAX_BYTES)
    return {
      problem: `the local server's response has more than ${RESPONSE_HEAD_MAX_BYTES / 1024} KiB of headers`,
    };
  return { payload };
}
