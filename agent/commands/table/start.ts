import { INSPECT_OPTION } from "../../inspect/inspect-address.ts";
import { findOptionText } from "../../options.ts";
import { API_OPTIONS } from "../../options/access-options.ts";
import { CONFIG_OPTION, JSON_OPTION, LOG_LEVEL_OPTION, type CommandSpec } from "../command.ts";

export const START = {
  name: "start",
  summary: "start several tunnels from underpass.yml",
  usages: ["start [--all|NAME...]"],
  description:
    "The tunnels of the file run in one process. When the file changes, and on SIGHUP, tunnels whose entries or policy files differ are opened, reopened or closed; the others stay connected.\n\nThe smallest file is {version: 1, tunnels: {web: {local: 3000}}}, which is also valid as indented lines of YAML. A tunnel has the options of `underpass http`, or with protocol: tcp those of `underpass tcp`, in snake case (host_header). --schema prints all of them.",
  examples: [
    ["underpass start --all", "every tunnel of underpass.yml"],
    ["underpass start web database", "these two"],
    ["underpass start --check", "is the file valid? Nothing is started"],
    [
      "underpass start --schema > underpass.schema.json",
      "the JSON Schema, with which editors complete and check the file",
    ],
  ],
  listArguments: async (args, options) => {
    const { listTunnelNames } = await import("../../config/tunnel-names.ts");
    return listTunnelNames(findOptionText(args, options, "config"));
  },
  options: {
    all: { kind: "flag", help: "start all tunnels of the file", excludesArguments: true },
    ...CONFIG_OPTION,
    check: { kind: "flag", help: "check the file and the files that it names, and exit" },
    schema: { kind: "flag", help: "print the JSON Schema of underpass.yml and exit" },
    ...INSPECT_OPTION,
    ...API_OPTIONS,
    ...JSON_OPTION,
    ...LOG_LEVEL_OPTION,
  },
} as const satisfies CommandSpec;
