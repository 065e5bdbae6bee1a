import { UsageError } from "../../options.ts";
import { parseSince } from "../../since.ts";

/** @returns `all`, or a timestamp in RFC 3339. @throws UsageError */
export function parseSinceOption(text: string, option: string): string {
  const since = parseSince(text, Date.now());
  if (since !== null) return since;
  throw new UsageError(
    `${option} must be 90s, 30m, 2h, 7d, a time such as 2026-01-31T12:00:00Z, or all, not ${text}`,
  );
}
