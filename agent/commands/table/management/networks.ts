import { API_OPTIONS } from "../../../options/access-options.ts";
import { JSON_OPTION, YES_OPTION, type CommandSpec } from "../../command.ts";

export const NETWORKS = {
  name: "networks",
  summary: "list and delete private networks",
  usages: ["networks"],
  description:
    "Without a subcommand, it lists the private networks of your organization. `underpass vpn` serves one.",
  options: { ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const NETWORKS_LIST = {
  name: "list",
  summary: "list the private networks of your organization",
  usages: ["networks list"],
  options: { ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const NETWORKS_DELETE = {
  name: "delete",
  summary: "delete a private network with its devices",
  usages: ["networks delete <network>"],
  description: "The network is named by its name or its id. Its agent ends, and its port is free.",
  options: { ...YES_OPTION, ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;
