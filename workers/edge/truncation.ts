/** Keeps a response that breaks off from looking complete, where the platform does not. */
import { waitUntil } from "cloudflare:workers";
import {
  SILENT_TRUNCATION_HEADER,
  UNTOUCHED_ENCODING_HEADER,
} from "../../durable-objects/tunnel/proxy/silent-truncation.ts";

/** How often a response that was cut looks whether its visitor has left. */
const DEPARTURE_POLL_MS = 1_000;

/**
 * When a tunnel's object fails, for example on a full disk, workerd ends its responses without a `Content-Length` with
 * the chunk that means "complete". The object marks such responses. Through this pipe their connection stays open
 * instead, until the visitor closes it.
 */
export function keepTruncationVisible(request: Request, response: Response): Response {
  if (!response.headers.has(SILENT_TRUNCATION_HEADER)) return response;
  // Only now: a stream that is read here is an object of its own to the garbage collector.
  const { body, status, statusText } = response;
  if (body === null) return response;
  const pipe = new IdentityTransformStream();
  waitUntil(
    body.pipeTo(pipe.writable, { preventAbort: true }).catch(() => waitForDeparture(request)),
  );
  const headers = new Headers(response.headers);
  headers.delete(SILENT_TRUNCATION_HEADER);
  const encoding = headers.get(UNTOUCHED_ENCODING_HEADER);
  if (encoding !== null) {
    headers.delete(UNTOUCHED_ENCODING_HEADER);
    headers.set("content-encoding", encoding);
  }
  return new Response(pipe.readable, { status, statusText, headers, encodeBody: "manual" });
}

/** Without a task that waits, the platform would end the response. */
async function waitForDeparture({ signal }: Request): Promise<void> {
  while (!signal.aborted) await scheduler.wait(DEPARTURE_POLL_MS);
}
