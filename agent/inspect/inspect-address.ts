import { parseListenAddress, type ListenAddress } from "../connect/listen-address.ts";
import { UsageError } from "../options.ts";

/** Parses `--inspect`. @throws UsageError */
export function parseInspectAddress(text: string, option: string): ListenAddress | "off" {
  if (text === "off") return text;
  const address = parseListenAddress(text);
  if (address) return address;
  throw new UsageError(`${option} must be off or an address such as 127.0.0.1:4040, not ${text}`);
}
