/** Writes one line of JSON for each event. Secrets and bodies are never logged. */
type Level = "info" | "warn" | "error";

export function log(level: Level, event: string, details: Record<string, unknown> = {}): void {
  console[level](JSON.stringify({ level, event, ...details }));
}
