/**
 * The table of commands, from which parsing, `--help`, docs/cli.md and completion derive. It imports none of the commands' code:
 * `underpass version` should not wait for it.
 */
import { defineCommand, type Command } from "../command.ts";
import { CONNECT } from "./connect.ts";
import { HTTP } from "./http.ts";
import { LOGIN } from "./login.ts";
import { START } from "./start.ts";
import { TCP } from "./tcp.ts";
import { COMPLETION, OPEN, VERSION } from "./own.ts";
import { VPN, VPN_ADD, VPN_DEVICES, VPN_REMOVE } from "./vpn.ts";
import { WEBHOOKS } from "./webhooks.ts";

interface CommandGroup {
  title: string;
  commands: readonly Command[];
}

/** In the order of the help text. */
export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    title: "Share and connect",
    commands: [
      defineCommand(HTTP, async () => (await import("../http.ts")).run),
      defineCommand(TCP, async () => (await import("../tcp.ts")).run),
      defineCommand(START, async () => (await import("../start.ts")).run),
      defineCommand(CONNECT, async () => (await import("../connect.ts")).run),
      defineCommand(WEBHOOKS, async () => (await import("../webhooks.ts")).run),
      defineCommand(VPN, async () => (await import("../vpn.ts")).run, {
        subcommandIndex: 1,
        subcommands: [
          defineCommand(VPN_ADD, async () => (await import("../vpn-devices.ts")).addDevice),
          defineCommand(VPN_DEVICES, async () => (await import("../vpn-devices.ts")).listDevices),
          defineCommand(VPN_REMOVE, async () => (await import("../vpn-devices.ts")).removeDevice),
        ],
      }),
    ],
  },
  {
    title: "This machine",
    commands: [
      defineCommand(LOGIN, async () => (await import("../login.ts")).run),
      defineCommand(OPEN, async () => (await import("../open.ts")).run),
      defineCommand(COMPLETION, async () => (await import("../completion.ts")).run),
      defineCommand(VERSION, async () => (await import("../version.ts")).run),
    ],
  },
];

export const COMMANDS: readonly Command[] = COMMAND_GROUPS.flatMap(({ commands }) => commands);
