import { SERVICE_VERSION } from "../protocol/version.ts";

export function formatVersion(): string {
  return `underpass ${SERVICE_VERSION}`;
}
