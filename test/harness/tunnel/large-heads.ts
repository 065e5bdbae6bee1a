/** Captures whose headers were not stored, because too many requests or responses had large ones. */
import { LARGE_HEADS } from "../../../durable-objects/tunnel/captures/memory.ts";
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import type { Person } from "../server/api.ts";
import { getCapture, waitForCaptures } from "./visited-tunnel.ts";

/** With this in its path, or in a header, a request or a response has a large head. */
export const LARGE_TEXT = "p".repeat(20_000);

/**
 * Visits a tunnel until headers are no longer stored.
 * @param visit sends a request with a large head, or with a large head of its response, to a path that begins with `path`.
 * @returns the first capture without them.
 */
export async function captureWithoutHeaders(
  by: Person,
  tunnelId: string,
  visit: (path: string) => Promise<unknown>,
): Promise<CaptureDetail> {
  const folder = `/${crypto.randomUUID()}`;
  const burst = Array.from({ length: LARGE_HEADS.burst }, (_, n) => visit(`${folder}/burst/${n}/`));
  await Promise.all(burst);
  // Meanwhile some more may be stored.
  for (let n = 0; ; n += 1) {
    const path = `${folder}/${n}/`;
    await visit(path);
    const [summary] = await waitForCaptures(by, { tunnel_id: tunnelId, path }, 1);
    const capture = await getCapture(by, summary!.id);
    if (capture.truncated.request_head || capture.truncated.response_head) return capture;
  }
}
