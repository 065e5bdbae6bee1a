/** The bounds of a session of HTTP/2. Those of nghttp2 and Node.js that are not named here are kept. */
import type { ServerSessionOptions } from "node:http2";
import { HEAD_MAX_BYTES, HEAD_MAX_FIELDS } from "../http1/request-head.ts";

/** Requests of a session at the same time. */
const STREAMS_MAX = 100;
/** A session alone does not use up the connections of its source. */
const SOURCE_PART = 1 / 2;
/** Cookies arrive in a field each, and are joined to one. */
const FIELDS_MAX = 2 * HEAD_MAX_FIELDS;
/** What RFC 9113 §6.5.2 adds to the size of a field. */
const FIELD_OVERHEAD_BYTES = 32;
/** The bytes of a request's body that may be on their way, or wait here: 10 MB/s over a path of 50 ms. */
const WINDOW_BYTES = 512 * 1024;
/** The same for all requests of a session together. The default is 64 KiB: 1.3 MB/s over that path. */
export const SESSION_WINDOW_BYTES = 8 * WINDOW_BYTES;
/** Bounds the memory for the pieces of responses that are being sent, and for nghttp2 itself. */
const SESSION_MEMORY_MAX_MB = 16;

/** @param connectionsMax how many connections one source may have. */
export function createSessionOptions(connectionsMax: number): ServerSessionOptions {
  return {
    settings: {
      maxConcurrentStreams: Math.ceil(Math.min(STREAMS_MAX, connectionsMax * SOURCE_PART)),
      maxHeaderListSize: HEAD_MAX_BYTES + FIELDS_MAX * FIELD_OVERHEAD_BYTES,
      initialWindowSize: WINDOW_BYTES,
    },
    maxHeaderListPairs: FIELDS_MAX,
    maxSendHeaderBlockLength: 2 * HEAD_MAX_BYTES,
    maxSessionMemory: SESSION_MEMORY_MAX_MB,
    // Local servers repeat fields of which there should be one.
    strictSingleValueFields: false,
  };
}
