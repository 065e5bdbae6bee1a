import type { CommandSpec } from "../command.ts";

export const LOGIN = {
  name: "login",
  summary: "get a token for this machine",
  calls: ["login"],
  description:
    "Prints an address at which you approve this machine in a browser, and saves the token.",
  examples: [
    ["underpass login --server https://underpass.example", "for a server of your own"],
    ["underpass login --setup CODE", "creates the owner's account of a new server"],
  ],
  options: {
    server: { kind: "text", value: "URL", help: "the Underpass server (default: the last login)" },
    setup: {
      kind: "text",
      value: "CODE",
      help: "the code that a new server prints: creates its owner's account",
    },
    email: { kind: "text", value: "ADDRESS", help: "with --setup: the account's e-mail address" },
    label: {
      kind: "text",
      value: "NAME",
      help: "the name of this machine's token (default: the host name)",
    },
  },
} as const satisfies CommandSpec;
