import { parseListenAddress, type ListenAddress } from "../../connect/listen-address.ts";
import { UsageError } from "../../options.ts";
import { listTcpTunnelArguments } from "./list-arguments.ts";
import { API_OPTIONS } from "../../options/access-options.ts";
import { JSON_OPTION, LOG_LEVEL_OPTION, type CommandSpec } from "../command.ts";

export const CONNECT = {
  name: "connect",
  summary: "open a local port that leads to a TCP tunnel",
  usages: ["connect <tunnel>"],
  listArguments: listTcpTunnelArguments,
  examples: [
    ["underpass connect my-db", "at the port that the tunnel's server listens on"],
    ["underpass connect my-db --listen 5433", "at port 5433 of this machine"],
  ],
  options: {
    listen: {
      kind: "text",
      placeholder: "ADDR",
      help: "where to listen: 5433, 127.0.0.1:5433, [::1]:5433 (default: the tunnel's own port)",
      parse: parseListen,
    },
    ...API_OPTIONS,
    ...JSON_OPTION,
    ...LOG_LEVEL_OPTION,
  },
} as const satisfies CommandSpec;

function parseListen(text: string, option: string): ListenAddress {
  const address = parseListenAddress(text);
  if (address) return address;
  throw new UsageError(
    `${option} must be a port up to 65535, or an address such as 127.0.0.1:5433, not ${text}`,
  );
}
