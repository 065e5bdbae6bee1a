/**
 * The latest requests as visitors sent them, in memory only, so that they can be sent to the local server again.
 * Nothing is stored unless an output of the agent can replay requests.
 */
import { findHeader } from "../../shared/raw-headers.ts";
import type { RequestReport } from "../library/types.ts";

export const STORED_BODY_MAX_BYTES = 512 * 1024;
/** The most that all heads and bodies together may take. */
export const STORED_MAX_BYTES = 8 * 1024 * 1024;

/** The memory that a request, each text of its head and each chunk of its body take, beside their characters and bytes. */
const REQUEST_OVERHEAD_BYTES = 256;
const TEXT_OVERHEAD_BYTES = 32;
const CHUNK_OVERHEAD_BYTES = 256;

/** The head and the body of a request as the tunnel sent them. */
export interface StoredRequest {
  head: readonly string[];
  /** null when the request has no body. */
  body: Uint8Array | null;
}

/** `forgotten`: newer requests needed the room. `incomplete`: it was answered before the end of its body was received. */
export type StorageProblem = "forgotten" | "incomplete" | "too_large";

interface Entry {
  head: readonly string[];
  chunks: Uint8Array[] | null;
  bytes: number;
  contentLength: number | undefined;
  problem: StorageProblem | null;
}

export class StoredRequests {
  /** Oldest first. */
  readonly #entries = new Map<RequestReport, Entry>();
  #bytes = 0;

  /** @param head method, target, and names and values of the headers in turn. */
  add(report: RequestReport, head: readonly string[], hasBody: boolean): void {
    const bytes = head.reduce(
      (sum, { length }) => sum + length + TEXT_OVERHEAD_BYTES,
      REQUEST_OVERHEAD_BYTES,
    );
    const chunks = hasBody ? [] : null;
    const contentLength = hasBody ? findContentLength(head) : undefined;
    const problem = hasBody ? "incomplete" : null;
    this.#entries.set(report, { head, chunks, bytes, contentLength, problem });
    this.#grow(bytes);
  }

  addBody(report: RequestReport, payload: Uint8Array, isLast: boolean): void {
    const entry = this.#entries.get(report);
    if (!entry?.chunks || entry.problem === "too_large") return;
    if (report.bytesIn > STORED_BODY_MAX_BYTES) {
      const bodyBytes = countBytes(entry.chunks);
      entry.chunks = [];
      entry.problem = "too_large";
      entry.bytes -= bodyBytes;
      this.#bytes -= bodyBytes;
      return;
    }
    // The service may mark the end later, when a fast local server has answered and the stream is gone.
    if (isLast || report.bytesIn === entry.contentLength) entry.problem = null;
    if (payload.byteLength === 0) return;
    // A view would keep the whole message of the wire in memory.
    const chunk = Uint8Array.from(payload);
    const bytes = countBytes([chunk]);
    entry.chunks.push(chunk);
    entry.bytes += bytes;
    this.#grow(bytes);
  }

  find(report: RequestReport): StoredRequest | StorageProblem {
    const entry = this.#entries.get(report);
    if (!entry) return "forgotten";
    const { head, chunks, problem } = entry;
    return problem ?? { head, body: chunks && Buffer.concat(chunks) };
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    for (const [report, entry] of this.#entries) {
      if (this.#bytes <= STORED_MAX_BYTES) return;
      this.#entries.delete(report);
      this.#bytes -= entry.bytes;
    }
  }
}

function findContentLength([, , ...lines]: readonly string[]): number | undefined {
  const value = findHeader(lines, "content-length");
  return value === null ? undefined : Number(value);
}

function countBytes(chunks: Uint8Array[]): number {
  return chunks.reduce((sum, { byteLength }) => sum + byteLength + CHUNK_OVERHEAD_BYTES, 0);
}
