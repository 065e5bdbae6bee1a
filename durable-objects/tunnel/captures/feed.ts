/** Who watches what is captured, as it happens. */
import type { CaptureSummary } from "../../../protocol/resources/captures.ts";

export interface CaptureFeed {
  /** Otherwise nothing need be said. */
  readonly isWatched: boolean;
  /** An exchange that is over, or a new state of one that lasts. */
  captured(summary: CaptureSummary): void;
}

export const NOBODY: CaptureFeed = { isWatched: false, captured: () => undefined };
