/** The names of network interfaces. */
import { UsageError } from "../../options.ts";

/** The limit of Linux: IFNAMSIZ without the terminating zero. */
export const INTERFACE_NAME_MAX_CHARS = 15;
const INTERFACE_NAME = /^[A-Za-z0-9_=+.-]+$/;

/** @param source where the name comes from, for messages. @throws UsageError */
export function parseInterfaceName(name: string, source: string): string {
  if (name.length <= INTERFACE_NAME_MAX_CHARS && INTERFACE_NAME.test(name)) return name;
  throw new UsageError(
    `${source} must have up to ${INTERFACE_NAME_MAX_CHARS} letters, digits, dots or hyphens, not ${name}`,
  );
}
