/** A search for a text in the bodies, messages and events of requests. Each request is loaded for it, so it is bounded. */
import type {
  CaptureDetail,
  CaptureSummary,
} from "../../../../protocol/schemas/inspector/captures.ts";
import { fromBase64 } from "../../../../shared/bytes.ts";
import { inParallel } from "../../../../shared/in-parallel.ts";
import { isNotFound } from "../../../api/request.ts";
import { decodeContent } from "../decode/content-encoding.ts";

/** The newest requests are searched. */
export const BODY_SEARCH_MAX_REQUESTS = 1_000;
const LOADED_AT_ONCE = 4;

interface BodySearchOptions {
  load: (id: string, signal: AbortSignal) => Promise<CaptureDetail>;
  signal: AbortSignal;
  /** Called after each request. */
  onSearched: (capture: CaptureSummary, isFound: boolean) => void;
}

/** @param text is found in upper and lower case. */
export async function searchBodies(
  captures: readonly CaptureSummary[],
  text: string,
  { load, signal, onSearched }: BodySearchOptions,
): Promise<void> {
  const wanted = text.toLowerCase();
  // A busy tunnel may have dropped the oldest requests since they were listed.
  const loadOne = (id: string) =>
    load(id, signal).catch((error: unknown) => {
      if (isNotFound(error)) return null;
      throw error;
    });
  await inParallel(LOADED_AT_ONCE, [...captures], async (capture) => {
    if (signal.aborted) return;
    const isFound = hasBody(capture) && (await containsText(await loadOne(capture.id), wanted));
    if (!signal.aborted) onSearched(capture, isFound);
  });
}

function hasBody({ request_size: sent, response_size: received, kind }: CaptureSummary): boolean {
  return sent + received > 0 || kind !== "http";
}

/** @param request null when it is no longer stored. */
async function containsText(request: CaptureDetail | null, wanted: string): Promise<boolean> {
  if (request === null) return false;
  const isInText = (text: string) => text.toLowerCase().includes(wanted);
  if (request.events.some(({ data }) => isInText(data))) return true;
  if (request.frames.some(({ data }) => isInText(decodeUtf8(decodeBase64(data))))) return true;
  const sides = [
    [request.request_body, request.request_headers],
    [request.response_body, request.response_headers],
  ] as const;
  for (const [body, headers] of sides) {
    if (body === "") continue;
    const { bytes } = await decodeContent(decodeBase64(body), headers["content-encoding"]);
    if (isInText(decodeUtf8(bytes))) return true;
  }
  return false;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  return fromBase64(text) ?? new Uint8Array();
}

function decodeUtf8(bytes: Uint8Array<ArrayBuffer>): string {
  return new TextDecoder().decode(bytes);
}
