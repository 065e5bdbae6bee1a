import { INSPECT_OPTION } from "../../inspect/inspect-address.ts";
import { API_OPTIONS } from "../../options/access-options.ts";
import { TCP_TUNNEL_OPTIONS } from "../../tcp/tcp-options.ts";
import { JSON_OPTION, LOG_LEVEL_OPTION, type CommandSpec } from "../command.ts";

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
