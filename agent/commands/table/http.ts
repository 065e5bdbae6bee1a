import { INSPECT_OPTION } from "../../inspect/inspect-address.ts";
import { API_OPTIONS } from "../../options/access-options.ts";
import { HTTP_TUNNEL_OPTIONS } from "../../tunnel/http-options.ts";
import { JSON_OPTION, LOG_LEVEL_OPTION, type CommandSpec } from "../command.ts";

export const HTTP = {
  name: "http",
  summary: "share a local web server, or files",
  usages: ["http <port|host:port|URL|path>"],
  arguments: "file",
  description:
    "The smallest policy file is {actions: [{kind: deny, path_prefix: /admin}]}, which is also valid as indented lines of YAML. The server's /docs describes all actions, and the tunnel's page in the dashboard tests a policy on recent requests.",
  examples: [
    ["underpass http 3000", "at a random name"],
    ["underpass http 3000 --subdomain shop", "at the name shop"],
    [
      "underpass http https://localhost:8443 --insecure-upstream",
      "an https server with a certificate of its own",
    ],
    ["underpass http unix:/run/app.sock", "a server that listens on a Unix socket"],
    ["underpass http ./public", "the files of a directory"],
    ["underpass http 3000 --url https://app.example.com", "at your own verified domain"],
    ["underpass http 3000 --name shop --pool", "one of several agents that share the name shop"],
    ["underpass http 3000 --basic-auth ann:PASSWORD", "for visitors with the password"],
    ["underpass http 3000 --json", "one JSON object per line, for scripts"],
  ],
  options: {
    ...HTTP_TUNNEL_OPTIONS,
    ...INSPECT_OPTION,
    ...API_OPTIONS,
    ...JSON_OPTION,
    ...LOG_LEVEL_OPTION,
  },
} as const satisfies CommandSpec;
