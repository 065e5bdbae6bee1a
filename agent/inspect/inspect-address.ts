import { parseListenAddress, type ListenAddress } from "../connect/listen-address.ts";
import { UsageError, type OptionSpecs } from "../options.ts";

/** Parses `--inspect`. @throws UsageError */
export function parseInspectAddress(text: string, option: string): ListenAddress | "off" {
  if (text === "off") return text;
  const address = parseListenAddress(text);
  if (address) return address;
  throw new UsageError(`${option} must be off or an address such as 127.0.0.1:4040, not ${text}`);
}

/** Every command that serves tunnels has this option. */
export const INSPECT_OPTION = {
  inspect: {
    kind: "text",
    placeholder: "ADDR",
    help: "the local address at which programs can read the tunnels' states and requests, or off (default: 127.0.0.1:4040)",
    complete: ["off"],
    parse: parseInspectAddress,
  },
} as const satisfies OptionSpecs;
