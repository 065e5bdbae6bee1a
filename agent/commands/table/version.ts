import type { CommandSpec } from "../command.ts";

export const VERSION = {
  name: "version",
  summary: "print the version",
  calls: ["version"],
  options: { json: { kind: "flag", help: "print an object with the version of Node.js too" } },
} as const satisfies CommandSpec;
