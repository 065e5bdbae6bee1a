import type { CommandSpec } from "../command.ts";

export const OPEN = {
  name: "open",
  summary: "open the dashboard in a browser",
  usages: ["open"],
  description:
    "Prints the dashboard's address, and opens it if this machine has a display and you are not connected over SSH.",
  options: {
    server: {
      kind: "text",
      placeholder: "URL",
      help: "the Underpass server (default: the last login)",
    },
  },
} as const satisfies CommandSpec;
