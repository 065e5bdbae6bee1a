import { API_OPTIONS } from "../../options/access-options.ts";
import { type CommandSpec } from "../command.ts";

export const DOCTOR = {
  name: "doctor",
  summary: "check the connection to the server, and a local server",
  usages: ["doctor [port|host:port|URL]"],
  description:
    "Tries each step from this machine to the server, and prints what to do about each one that fails. It opens no tunnel and changes nothing. The exit code is 1 if something is broken; warnings do not count.",
  examples: [
    ["underpass doctor", "the settings, the network and the token"],
    ["underpass doctor 3000", "also the local server on port 3000"],
    ["underpass doctor unix:/run/app.sock", "also one that listens on a Unix socket"],
  ],
  options: {
    ...API_OPTIONS,
    json: { kind: "flag", help: "print the results as a JSON array" },
  },
} as const satisfies CommandSpec;
