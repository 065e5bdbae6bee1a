/**
 * How the agent sends requests to the local server. One row is an option of the command line, which `OriginServer`
 * reads by its name.
 */
import type { OptionSpecs, OptionValues } from "../options.ts";
import { parseHostMode } from "./host-header.ts";

export const ORIGIN_OPTIONS = {
  header: {
    kind: "list",
    hasCommas: true,
    placeholder: "'NAME: VALUE'",
    help: "add a header to each request to the local server; may be repeated",
    parse: async (text: string, option: string) =>
      (await import("./added-headers.ts")).parseAddedHeader(text, option),
  },
  "host-header": {
    kind: "text",
    placeholder: "MODE",
    help: "auto, preserve, rewrite, or the host name to send to the local server",
    complete: ["auto", "preserve", "rewrite"],
    parse: parseHostMode,
  },
} as const satisfies OptionSpecs;

export const INSECURE_UPSTREAM_OPTION = {
  "insecure-upstream": { kind: "flag", help: "accept any certificate of a local https server" },
} as const satisfies OptionSpecs;

export type OriginOptions = Partial<
  OptionValues<typeof ORIGIN_OPTIONS & typeof INSECURE_UPSTREAM_OPTION>
>;
