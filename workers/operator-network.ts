/**
 * Calls to what the operator has configured. Unlike what tenants name that may be on a private address; like
 * everything that is called from here it gets a bounded time and says a bounded amount.
 */
import type { Env } from "./env.ts";
import { BoundedBuffer } from "../shared/bounded-buffer.ts";

export interface CallBounds {
  /** For all of it, the body included. */
  maxMs: number;
  maxBytes: number;
}

/** @throws Error when it can't be reached, or goes beyond a bound. */
export async function callOperatorService(
  { OPERATOR_NETWORK: network }: Pick<Env, "OPERATOR_NETWORK">,
  url: string,
  init: RequestInit,
  { maxMs, maxBytes }: CallBounds,
): Promise<Response> {
  const signal = AbortSignal.timeout(maxMs);
  const bounded = { ...init, signal };
  const response = await (network ? network.fetch(url, bounded) : fetch(url, bounded));
  const body = await readBody(response, signal, maxBytes);
  const headers = new Headers(response.headers);
  // It is read, so it is plain text by now.
  headers.delete("content-encoding");
  return new Response(body.byteLength === 0 ? null : body, { status: response.status, headers });
}

async function readBody(
  { body, url }: Response,
  signal: AbortSignal,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const buffer = new BoundedBuffer(maxBytes);
  const reader = (body as ReadableStream<Uint8Array> | null)?.getReader();
  const abort = () => void reader?.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", abort);
  for (;;) {
    const chunk = await reader?.read();
    signal.throwIfAborted();
    if (!chunk || chunk.done) break;
    if (!buffer.append(chunk.value)) {
      await reader?.cancel();
      throw new Error(`${url} answers with more than ${maxBytes} bytes`);
    }
  }
  signal.removeEventListener("abort", abort);
  return buffer.bytes;
}
