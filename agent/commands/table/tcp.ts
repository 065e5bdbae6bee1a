import { INSPECT_OPTION } from "../../inspect/inspect-address.ts";
import type { OptionSpecs } from "../../options.ts";
import { PROXY_PROTOCOLS } from "../../tcp/proxy-protocol.ts";
import {
  NAME_OPTION,
  TCP_QUERY_OPTIONS,
  TUNNEL_QUERY_OPTIONS,
} from "../../tunnel/tunnel-options.ts";
import { API_OPTIONS, JSON_OPTION, LOG_LEVEL_OPTION, type CommandSpec } from "../command.ts";

/** Those that describe the tunnel. */
export const TCP_TUNNEL_OPTIONS = {
  ...TUNNEL_QUERY_OPTIONS,
  ...NAME_OPTION,
  ...TCP_QUERY_OPTIONS,
  private: {
    kind: "flag",
    help: "no public port: only `underpass connect` with a token reaches the tunnel",
  },
  "proxy-protocol": {
    kind: "text",
    placeholder: "VERSION",
    help: "send a PROXY protocol header with the visitor's address on each local connection",
    choices: PROXY_PROTOCOLS,
  },
} as const satisfies OptionSpecs;

export const TCP = {
  name: "tcp",
  summary: "give a local TCP server a public port",
  usages: ["tcp <port|host:port>"],
  examples: [
    ["underpass tcp 5432", "a database, at a free public port"],
    ["underpass tcp 22 --allow 203.0.113.0/24", "SSH, for visitors of one network"],
    ["underpass tcp unix:/run/app.sock", "a server that listens on a Unix socket"],
    ["underpass tcp 5432 --private --name db", "a database, for `underpass connect db` only"],
  ],
  options: {
    ...TCP_TUNNEL_OPTIONS,
    ...INSPECT_OPTION,
    ...API_OPTIONS,
    ...JSON_OPTION,
    ...LOG_LEVEL_OPTION,
  },
} as const satisfies CommandSpec;
