/** Why a body, or a part of it, is not stored. */
import { formatBytes } from "../../../ui/numbers.ts";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";

/** The service stores this much of each body (docs/protocols/live-view.md). */
const STORED_MAX_BYTES = 512 * 1024;

interface MissingBody {
  text: string;
  /** Whether the tunnel's capture settings decide about it. */
  isAboutSettings: boolean;
}

/** @returns null when the whole body is stored. */
export function explainMissingBody(
  { state, truncated, ...request }: CaptureDetail,
  side: "request" | "response",
  storedBytes: number,
): MissingBody | null {
  if (!truncated[side]) return null;
  const explain = (text: string, isAboutSettings = false) => ({ text, isAboutSettings });
  const size = request[`${side}_size`];
  const sizeText = formatBytes(size);
  if (storedBytes >= STORED_MAX_BYTES) {
    return explain(`Cut after ${formatBytes(STORED_MAX_BYTES)}: the whole body has ${sizeText}.`);
  }
  if (state === "open") return explain("The body is still on its way.");
  if (size === 0) {
    return side === "request"
      ? explain(
          state === "refused"
            ? "The body was not read, because the request was refused first."
            : "The body was not read before the request ended.",
        )
      : explain(
          request.error === null
            ? "The response ended before the first byte of its body."
            : "Underpass answered this request itself. Its own responses are not stored.",
        );
  }
  if (storedBytes === 0) {
    return explain(
      `The body of ${sizeText} was not stored: bodies were not captured for this tunnel, or the tunnel captured too much.`,
      true,
    );
  }
  if (storedBytes < size) {
    return explain(
      `Only the first ${formatBytes(storedBytes)} of ${sizeText} are stored: the tunnel captured too much.`,
    );
  }
  return explain(`The transfer broke off after ${sizeText}.`);
}
