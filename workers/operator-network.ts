/**
 * Calls to services that the operator has configured. Unlike URLs that tenants configure, they may have private
 * addresses. Time and response size are bounded.
 */
import type { Env } from "./env.ts";
import { BoundedBuffer } from "../shared/bounds/bounded-buffer.ts";

interface CallBounds {
  /** For the whole call, including the body. */
  maxMs: number;
  maxBytes: number;
}

/** @throws Error when the service can't be reached, or exceeds a bound. */
export async function fetchConfiguredService(
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
  // The body has been decoded.
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
      throw new Error(`${url} answered with more than ${maxBytes} bytes`);
    }
  }
  signal.removeEventListener("abort", abort);
  return buffer.bytes;
}
