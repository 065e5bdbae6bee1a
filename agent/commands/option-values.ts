/** Values of options that several commands have. */
import { LEVELS, type Level } from "../output/plain-lines.ts";
import { UsageError } from "../options.ts";

/** @throws UsageError when it is not a number of seconds. */
export function parseSeconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError("--ttl takes whole seconds");
  return Number(text);
}

/** @throws UsageError when it is not a level. */
export function parseLevel(text: string | undefined): Level {
  const level = LEVELS.find((known) => known === (text ?? "info"));
  if (!level) throw new UsageError(`--log-level is one of ${LEVELS.join(", ")}`);
  return level;
}
