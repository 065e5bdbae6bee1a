/** Commands about the agent itself. */
import { JSON_OPTION, type CommandSpec } from "../command.ts";

export const OPEN = {
  name: "open",
  summary: "open the dashboard in a browser",
  calls: ["open"],
  description:
    "Prints the dashboard's address, and opens it if this machine has a display and you are not connected over SSH.",
  options: {
    server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
  },
} as const satisfies CommandSpec;

export const COMPLETION = {
  name: "completion",
  summary: "complete commands and options with the Tab key",
  calls: ["completion", "completion bash|zsh|fish"],
  description: "Without a shell's name it says how to install completion for your shell.",
  examples: [['eval "$(underpass completion bash)"', "for this terminal only"]],
  arguments: ["bash", "zsh", "fish"],
  options: {},
} as const satisfies CommandSpec;

export const VERSION = {
  name: "version",
  summary: "print the version",
  calls: ["version"],
  options: {
    json: { ...JSON_OPTION.json, help: "print an object with the version, Node.js and platform" },
  },
} as const satisfies CommandSpec;
