/** Keeps a response that breaks off from looking complete, where the platform does not. */
import { waitUntil } from "cloudflare:workers";
import { getConnectionKey, toConnectionPath } from "../../protocol/front-proxy/connection-key.ts";
import type { Env } from "../env.ts";
import {
  SILENT_TRUNCATION_HEADER,
  UNTOUCHED_ENCODING_HEADER,
} from "../../durable-objects/tunnel/proxy/silent-truncation.ts";

/** How often it checks whether the visitor has left. */
const DEPARTURE_POLL_MS = 1_000;

/**
 * When an agent or the local server breaks off, or a tunnel's object fails, for example on a full disk, workerd ends
 * responses without a `Content-Length` with the chunk that means "complete". The object marks such responses. They pass
 * through this pipe, which does not end, and the front proxy cuts the connection.
 */
export function keepTruncationVisible(request: Request, env: Env, response: Response): Response {
  if (!response.headers.has(SILENT_TRUNCATION_HEADER)) return response;
  // Only now: a stream that is read here is an object of its own to the garbage collector.
  const { body, status, statusText } = response;
  if (body === null) return response;
  const pipe = new IdentityTransformStream();
  // Without the signal, a visitor who leaves would be noticed only when the next bytes of the body arrive.
  const piping = body.pipeTo(pipe.writable, { preventAbort: true, signal: request.signal });
  waitUntil(piping.catch(() => cutConnection(request, env)));
  const headers = new Headers(response.headers);
  headers.delete(SILENT_TRUNCATION_HEADER);
  const encoding = headers.get(UNTOUCHED_ENCODING_HEADER);
  if (encoding !== null) {
    headers.delete(UNTOUCHED_ENCODING_HEADER);
    headers.set("content-encoding", encoding);
  }
  return new Response(pipe.readable, { status, statusText, headers, encodeBody: "manual" });
}

async function cutConnection({ cf, signal }: Request, { FRONT_PROXY }: Env): Promise<void> {
  const key = getConnectionKey(cf);
  if (FRONT_PROXY && key !== null && !signal.aborted) {
    const url = `http://front-proxy${toConnectionPath(key)}`;
    const response = await FRONT_PROXY.fetch(url, { method: "DELETE" }).catch(() => undefined);
    // The connection is closed, or it was already.
    if (response !== undefined) return;
  }
  // Without a task that waits, the platform would end the response.
  while (!signal.aborted) await scheduler.wait(DEPARTURE_POLL_MS);
}
