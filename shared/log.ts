/** One line of JSON for each thing worth telling. Secrets and bodies never go in. */
type Level = "info" | "warn" | "error";

export function log(level: Level, event: string, details: Record<string, unknown> = {}): void {
  console[level](JSON.stringify({ level, event, ...details }));
}
