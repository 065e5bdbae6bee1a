import { CONFIG_OPTION, JSON_OPTION, type CommandSpec } from "../command.ts";

const SYSTEM_OPTION = {
  system: { kind: "flag", help: "a service of the system, which starts at boot (needs root)" },
} as const;

export const SERVICE = {
  name: "service",
  summary: "run the tunnels of underpass.yml as a service of this machine",
  usages: ["service install|status|uninstall"],
  description:
    "On Linux the service is a systemd unit of the user, or of the system with --system. On macOS and Windows, `install` and `uninstall` print the commands to run, and `status` names the command that shows the state.",
  options: {},
} as const satisfies CommandSpec;

export const SERVICE_INSTALL = {
  name: "install",
  summary: "install and start the service",
  usages: ["service install"],
  examples: [
    ["underpass service install", "for the underpass.yml of this directory"],
    ["underpass service install --config /etc/underpass.yml", "for another file"],
  ],
  options: { ...CONFIG_OPTION, ...SYSTEM_OPTION },
} as const satisfies CommandSpec;

export const SERVICE_STATUS = {
  name: "status",
  summary: "show whether the service runs; exit code 1 when it does not",
  usages: ["service status"],
  options: { ...SYSTEM_OPTION, ...JSON_OPTION },
} as const satisfies CommandSpec;

export const SERVICE_UNINSTALL = {
  name: "uninstall",
  summary: "stop and remove the service",
  usages: ["service uninstall"],
  options: SYSTEM_OPTION,
} as const satisfies CommandSpec;
