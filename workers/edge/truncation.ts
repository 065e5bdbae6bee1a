/** Keeps a response that breaks off from looking complete, where the platform does not. */
import { waitUntil } from "cloudflare:workers";
import type { Env } from "../env.ts";

/** How often a response that was cut looks whether its visitor has left. */
const DEPARTURE_POLL_MS = 1_000;

/**
 * When a tunnel's object fails, for example on a full disk, workerd ends its responses without a `Content-Length` with the chunk
 * that means "complete". Through this pipe the connection stays open instead, until the visitor closes it. Server-sent events
 * may end, because their readers reconnect, and visitors of the hosted service notice the truncation themselves.
 */
export function keepTruncationVisible(request: Request, env: Env, response: Response): Response {
  const { body, headers } = response;
  if (body === null || headers.has("content-length") || env.HOSTED === "true") return response;
  if (headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const pipe = new IdentityTransformStream();
  waitUntil(
    body.pipeTo(pipe.writable, { preventAbort: true }).catch(() => waitForDeparture(request)),
  );
  return new Response(pipe.readable, response);
}

/** Without a task that waits, the platform would end the response. */
async function waitForDeparture({ signal }: Request): Promise<void> {
  while (!signal.aborted) await scheduler.wait(DEPARTURE_POLL_MS);
}
