/**
 * The table of commands, from which parsing, `--help`, docs/cli.md and completion derive. It imports none of the
 * commands' code: `underpass version` should not wait for it.
 */
import { defineCommand, type Command } from "../command.ts";
import { COMPLETION } from "./completion.ts";
import { CONNECT } from "./connect.ts";
import { DOCTOR } from "./doctor.ts";
import { HTTP } from "./http.ts";
import { LOGIN, LOGOUT } from "./login.ts";
import { LOGS } from "./management/logs.ts";
import {
  TOKENS,
  TOKENS_LIST,
  TOKENS_MINT,
  TOKENS_REVOKE,
  TOKENS_ROTATE,
} from "./management/tokens.ts";
import {
  TUNNELS,
  TUNNELS_DELETE,
  TUNNELS_LIST,
  TUNNELS_SHOW,
  TUNNELS_START,
  TUNNELS_STOP,
} from "./management/tunnels.ts";
import { NETWORKS, NETWORKS_DELETE, NETWORKS_LIST } from "./management/networks.ts";
import { OPEN } from "./open.ts";
import { SERVICE, SERVICE_INSTALL, SERVICE_STATUS, SERVICE_UNINSTALL } from "./service.ts";
import { START } from "./start.ts";
import { TCP } from "./tcp.ts";
import { VERSION } from "./version.ts";
import { VPN, VPN_ADD, VPN_DEVICES, VPN_REMOVE } from "./vpn.ts";
import { WEBHOOKS } from "./webhooks.ts";

const loadTunnels = () => import("../management/tunnels.ts");
const loadNetworks = () => import("../management/networks.ts");
const loadTokens = () => import("../management/tokens.ts");

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
    title: "Manage",
    commands: [
      defineCommand(TUNNELS, async () => (await loadTunnels()).listTunnels, {
        subcommands: [
          defineCommand(TUNNELS_LIST, async () => (await loadTunnels()).listTunnels),
          defineCommand(TUNNELS_SHOW, async () => (await loadTunnels()).showTunnel),
          defineCommand(TUNNELS_STOP, async () => (await loadTunnels()).stopTunnels),
          defineCommand(TUNNELS_START, async () => (await loadTunnels()).startTunnels),
          defineCommand(TUNNELS_DELETE, async () => (await loadTunnels()).deleteTunnels),
        ],
      }),
      defineCommand(TOKENS, async () => (await loadTokens()).listTokens, {
        subcommands: [
          defineCommand(TOKENS_LIST, async () => (await loadTokens()).listTokens),
          defineCommand(TOKENS_MINT, async () => (await loadTokens()).mintToken),
          defineCommand(TOKENS_ROTATE, async () => (await loadTokens()).rotateToken),
          defineCommand(TOKENS_REVOKE, async () => (await loadTokens()).revokeToken),
        ],
      }),
      defineCommand(NETWORKS, async () => (await loadNetworks()).listNetworks, {
        subcommands: [
          defineCommand(NETWORKS_LIST, async () => (await loadNetworks()).listNetworks),
          defineCommand(NETWORKS_DELETE, async () => (await loadNetworks()).deleteNetwork),
        ],
      }),
      defineCommand(LOGS, async () => (await import("../management/logs.ts")).run),
    ],
  },
  {
    title: "This machine",
    commands: [
      defineCommand(LOGIN, async () => (await import("../login/login.ts")).run),
      defineCommand(LOGOUT, async () => (await import("../login/logout.ts")).run),
      defineCommand(OPEN, async () => (await import("../open.ts")).run),
      defineCommand(DOCTOR, async () => (await import("../doctor.ts")).run),
      defineCommand(COMPLETION, async () => (await import("../completion/completion.ts")).run),
      {
        ...SERVICE,
        subcommands: [
          defineCommand(SERVICE_INSTALL, async () => (await import("../service.ts")).install),
          defineCommand(SERVICE_STATUS, async () => (await import("../service.ts")).status),
          defineCommand(SERVICE_UNINSTALL, async () => (await import("../service.ts")).uninstall),
        ],
      },
      defineCommand(VERSION, async () => (await import("../version.ts")).run),
    ],
  },
];

export const COMMANDS: readonly Command[] = COMMAND_GROUPS.flatMap(({ commands }) => commands);
