import { SERVER_OPTION } from "../../options/access-options.ts";
import { type CommandSpec } from "../command.ts";

export const OPEN = {
  name: "open",
  summary: "open the dashboard in a browser",
  usages: ["open"],
  description:
    "Prints the dashboard's address, and opens it if this machine has a display and you are not connected over SSH.",
  options: SERVER_OPTION,
} as const satisfies CommandSpec;
