/** The systemd unit of `underpass start`. It has no secrets: they are in files that only the agent's user can read. */

interface UnitOptions {
  /** The program with absolute path, and its arguments. */
  command: string[];
  /** A file with variables for `${NAME}` in underpass.yml; it need not exist. */
  environmentFile: string;
  /** `XDG_CONFIG_HOME`, when it differs from the default. */
  configHome: string | undefined;
  /** For a system unit: the user whose files it reads. Undefined for a unit of the user's own manager. */
  user: string | undefined;
}

/**
 * Without `PrivateTmp`, `ProtectHome` and `MemoryDenyWriteExecute`: local servers may listen on sockets in /tmp, the
 * configuration is in a home directory, and JavaScript is compiled while it runs.
 */
const SYSTEM_HARDENING = [
  "CapabilityBoundingSet=",
  "LockPersonality=true",
  "PrivateDevices=true",
  "ProtectClock=true",
  "ProtectControlGroups=true",
  "ProtectHostname=true",
  "ProtectKernelLogs=true",
  "ProtectKernelModules=true",
  "ProtectKernelTunables=true",
  "ProtectSystem=strict",
  "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
  "RestrictNamespaces=true",
  "RestrictRealtime=true",
  "RestrictSUIDSGID=true",
  "SystemCallArchitectures=native",
];

export function buildSystemdUnit(options: UnitOptions): string {
  const { command, environmentFile, configHome, user } = options;
  const isSystem = user !== undefined;
  const [program = "", ...args] = command;
  return [
    "[Unit]",
    "Description=Underpass tunnels",
    // A user's manager has no network targets; the agent connects again until it succeeds.
    ...(isSystem ? ["Wants=network-online.target", "After=network-online.target"] : []),
    "StartLimitIntervalSec=0",
    "",
    "[Service]",
    // The service has started when the program could be executed: `systemctl restart` fails otherwise.
    "Type=exec",
    `ExecStart=${[quoteValue(program), ...args.map(quoteArgument)].join(" ")}`,
    "ExecReload=kill -HUP $MAINPID",
    "Restart=always",
    "RestartSec=5",
    `EnvironmentFile=-${escapeSpecifiers(environmentFile)}`,
    ...(configHome === undefined
      ? []
      : [`Environment=${quoteValue(`XDG_CONFIG_HOME=${configHome}`)}`]),
    "NoNewPrivileges=true",
    "UMask=0077",
    ...(isSystem ? [`User=${escapeSpecifiers(user)}`, ...SYSTEM_HARDENING] : []),
    "",
    "[Install]",
    `WantedBy=${isSystem ? "multi-user.target" : "default.target"}`,
    "",
  ].join("\n");
}

/**
 * An argument of `ExecStart`. systemd replaces `$NAME` there, but not in the program's path (systemd.service(5),
 * "Command lines").
 */
function quoteArgument(text: string): string {
  return quoteValue(text.replaceAll("$", () => "$$"));
}

function quoteValue(text: string): string {
  return `"${escapeSpecifiers(text).replace(/["\\]/g, "\\$&")}"`;
}

/** `%` starts a specifier (systemd.unit(5)). */
function escapeSpecifiers(text: string): string {
  return text.replaceAll("%", "%%");
}
