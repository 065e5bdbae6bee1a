import { PUBLIC_TUNNEL_OPTIONS } from "../gates/options.ts";
import type { OptionSpecs } from "../options.ts";
import { INSECURE_UPSTREAM_OPTION, ORIGIN_OPTIONS } from "../origin/origin-options.ts";
import { NAME_OPTION, TUNNEL_QUERY_OPTIONS } from "./tunnel-options.ts";

/** The options that describe an HTTP tunnel, on the command line and in underpass.yml. */
export const HTTP_TUNNEL_OPTIONS = {
  ...TUNNEL_QUERY_OPTIONS,
  ...NAME_OPTION,
  ...PUBLIC_TUNNEL_OPTIONS,
  ...ORIGIN_OPTIONS,
  "directory-listing": {
    kind: "flag",
    help: "show what a shared directory without index.html contains",
  },
  ...INSECURE_UPSTREAM_OPTION,
  pool: {
    kind: "flag",
    help: "serve the name together with other agents that have --pool and the same token",
  },
} as const satisfies OptionSpecs;
