import { parseInterfaceName } from "../../vpn/wireguard/interface-name.ts";
import { parseAddressBlock, parsePort } from "../../tunnel/tunnel-options.ts";
import { API_OPTIONS } from "../../options/access-options.ts";
import { JSON_OPTION, LOG_LEVEL_OPTION, type CommandSpec } from "../command.ts";

export const VPN = {
  name: "vpn",
  summary: "serve a private WireGuard network, and manage its devices",
  usages: ["vpn <network>"],
  description:
    "Carries the network's traffic between its devices and the WireGuard server of this machine.",
  examples: [
    ["underpass vpn office --setup --apply", "makes this machine the server, and serves"],
    ["underpass vpn office add phone", "prints a device's configuration and QR code"],
  ],
  options: {
    setup: { kind: "flag", help: "make this machine the network's WireGuard server, then serve" },
    apply: { kind: "flag", help: "keep the WireGuard peers in step with the network's devices" },
    cidr: {
      kind: "text",
      placeholder: "CIDR",
      help: "with --setup: create the network with these addresses",
      parse: parseAddressBlock,
    },
    "listen-port": {
      kind: "text",
      placeholder: "PORT",
      help: "with --setup: the WireGuard server's port (default: 51820)",
      parse: parsePort,
    },
    interface: {
      kind: "text",
      placeholder: "NAME",
      help: "the WireGuard interface (default: wg-<network>)",
      parse: parseInterfaceName,
    },
    dir: {
      kind: "text",
      placeholder: "DIR",
      help: "the directory of the server's keys and configuration",
      complete: "directory",
    },
    config: {
      kind: "text",
      placeholder: "FILE",
      help: "the server's own configuration: its private key identifies the devices",
      complete: "file",
    },
    "replace-server": { kind: "flag", help: "with --setup: replace the registered server" },
    ...API_OPTIONS,
    ...JSON_OPTION,
    ...LOG_LEVEL_OPTION,
  },
} as const satisfies CommandSpec;

export const VPN_ADD = {
  name: "add",
  summary: "add a device: prints its configuration and QR code",
  usages: ["vpn <network> add <device>"],
  examples: [
    ["underpass vpn office add laptop --out laptop.conf", "for a device without a camera"],
  ],
  options: {
    out: {
      kind: "text",
      placeholder: "FILE",
      help: "write the configuration to a file",
      complete: "file",
    },
    "no-qr": { kind: "flag", help: "print no QR code" },
    ...API_OPTIONS,
    ...JSON_OPTION,
  },
} as const satisfies CommandSpec;

export const VPN_DEVICES = {
  name: "devices",
  summary: "list the network's devices",
  usages: ["vpn <network> devices"],
  options: { ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const VPN_REMOVE = {
  name: "remove",
  summary: "remove a device",
  usages: ["vpn <network> remove <device>"],
  description: "The device is named by its name, its address or its id.",
  options: { ...API_OPTIONS, ...JSON_OPTION },
} as const satisfies CommandSpec;
