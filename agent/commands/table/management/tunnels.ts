import { API_OPTIONS } from "../../../options/access-options.ts";
import { JSON_OPTION, YES_OPTION, type CommandSpec } from "../../command.ts";
import { listTunnelArguments } from "../list-arguments.ts";

/** In the order in which a tunnel gets them. */
const STATES = ["inactive", "active", "offline", "stopped", "expired"] as const;

const LIST_OPTIONS = {
  state: {
    kind: "text",
    placeholder: "STATE",
    help: "only tunnels in this state",
    choices: STATES,
  },
  ...API_OPTIONS,
  ...JSON_OPTION,
} as const satisfies CommandSpec["options"];

const NAMED = "Name a tunnel by its name, host, URL or id, as `underpass tunnels` prints them.";

export const TUNNELS = {
  name: "tunnels",
  summary: "list, show, stop, start and delete tunnels",
  usages: ["tunnels"],
  description: [
    "Without a subcommand, it lists the tunnels of your organization, newest first.",
    "It works with this machine's token, unless that is restricted to names or to a project, or with an access token in UNDERPASS_ACCESS_TOKEN.",
  ].join("\n\n"),
  examples: [
    ["underpass tunnels", "all tunnels"],
    ["underpass tunnels --state active --json", "one JSON object per tunnel that has an agent"],
    ["underpass tunnels stop shop", "visitors get an error until: underpass tunnels start shop"],
  ],
  options: LIST_OPTIONS,
} as const satisfies CommandSpec;

export const TUNNELS_LIST = {
  name: "list",
  summary: "list the tunnels of your organization, newest first",
  usages: ["tunnels list"],
  options: LIST_OPTIONS,
} as const satisfies CommandSpec;

export const TUNNELS_SHOW = {
  name: "show",
  summary: "show everything about a tunnel",
  usages: ["tunnels show <tunnel>"],
  description: NAMED,
  listArguments: listTunnelArguments,
  options: { ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const TUNNELS_STOP = {
  name: "stop",
  summary: "disconnect the agents of tunnels until they are started",
  usages: ["tunnels stop <tunnel>..."],
  description: NAMED,
  listArguments: listTunnelArguments,
  options: { ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const TUNNELS_START = {
  name: "start",
  summary: "let agents serve stopped tunnels again",
  usages: ["tunnels start <tunnel>..."],
  description: NAMED,
  listArguments: listTunnelArguments,
  options: { ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const TUNNELS_DELETE = {
  name: "delete",
  summary: "delete tunnels with their settings and captured requests",
  usages: ["tunnels delete <tunnel>..."],
  description: NAMED,
  listArguments: listTunnelArguments,
  options: { ...YES_OPTION, ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;
