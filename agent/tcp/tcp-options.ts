import type { OptionSpecs } from "../options.ts";
import { NAME_OPTION, TCP_QUERY_OPTIONS, TUNNEL_QUERY_OPTIONS } from "../tunnel/tunnel-options.ts";
import { PROXY_PROTOCOLS } from "./proxy-protocol.ts";

/** The options that describe a TCP tunnel, on the command line and in underpass.yml. */
export const TCP_TUNNEL_OPTIONS = {
  ...TUNNEL_QUERY_OPTIONS,
  ...NAME_OPTION,
  ...TCP_QUERY_OPTIONS,
  private: {
    kind: "flag",
    help: "no public port: only `underpass connect` with a token reaches the tunnel",
    excludes: ["remote-port"],
  },
  "proxy-protocol": {
    kind: "text",
    placeholder: "VERSION",
    help: "send a PROXY protocol header with the visitor's address on each local connection",
    choices: PROXY_PROTOCOLS,
  },
} as const satisfies OptionSpecs;
