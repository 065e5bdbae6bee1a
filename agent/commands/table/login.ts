import { CA_FILE_OPTION, SERVER_OPTION } from "../../options/access-options.ts";
import { type CommandSpec } from "../command.ts";

export const LOGIN = {
  name: "login",
  summary: "get a token for this machine",
  usages: ["login"],
  description:
    "Prints an address at which you approve this machine in a browser, and saves the token.",
  examples: [
    ["underpass login --server https://underpass.example", "for a server of your own"],
    ["underpass login --setup CODE", "creates the owner's account of a new server"],
  ],
  options: {
    ...SERVER_OPTION,
    ...CA_FILE_OPTION,
    setup: {
      kind: "text",
      placeholder: "CODE",
      help: "the code that a new server prints: creates its owner's account",
    },
    email: {
      kind: "text",
      placeholder: "ADDRESS",
      help: "with --setup: the account's email address",
    },
    label: {
      kind: "text",
      placeholder: "NAME",
      help: "the name of this machine's token (default: the host name)",
    },
  },
} as const satisfies CommandSpec;

export const LOGOUT = {
  name: "logout",
  summary: "remove the saved login of a server from this machine",
  usages: ["logout"],
  description:
    "Running tunnels stay connected. The token stays valid until it is revoked: in the dashboard, or with `underpass tokens revoke` and an access token.",
  examples: [["underpass logout --server https://underpass.example", "of this server only"]],
  options: SERVER_OPTION,
} as const satisfies CommandSpec;
