import { JSON_OPTION, type CommandSpec } from "../command.ts";

export const VERSION = {
  name: "version",
  summary: "print the version",
  usages: ["version"],
  options: {
    json: { ...JSON_OPTION.json, help: "print an object with the version, Node.js and platform" },
  },
} as const satisfies CommandSpec;
