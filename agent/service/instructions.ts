/** What a user runs on systems whose service manager the agent does not control. */
import { SettingsError } from "../settings-error.ts";
import type { Machine } from "./machine.ts";
import { PROGRAM } from "../program.ts";

export interface Instructions {
  install: string;
  uninstall: string;
  /** The command that prints the service's state. */
  status: string;
  /** How the service gets variables for underpass.yml. */
  variables: string;
}

const LABEL = "underpass";
/** Without a line for each request: these systems keep the whole file. */
const LOG_OPTIONS = ["--log-level", "warn"];
const RESTART_DELAY_S = 5;

/** @param command `underpass start` with absolute paths. @returns null for systems with systemd. @throws SettingsError */
export function findInstructions(command: string[], machine: Machine): Instructions | null {
  if (machine.platform === "darwin") return buildLaunchdInstructions(command, machine);
  return machine.platform === "win32" ? buildWindowsInstructions(command, machine) : null;
}

/** For launchd, which replaces nothing in a property list: neither `~` nor variables (launchd.plist(5)). */
function buildLaunchdInstructions(command: string[], { environment, home }: Machine): Instructions {
  const path = `~/Library/LaunchAgents/${LABEL}.plist`;
  const log = toXml(`${home}/Library/Logs/${LABEL}.log`);
  const configHome = environment["XDG_CONFIG_HOME"];
  const install = [
    "Run these commands in a terminal. The service starts now, and whenever you log in.",
    "",
    "mkdir -p ~/Library/LaunchAgents ~/Library/Logs",
    `cat > ${path} <<'END'`,
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    "<dict>",
    "  <key>Label</key>",
    `  <string>${LABEL}</string>`,
    "  <key>ProgramArguments</key>",
    "  <array>",
    ...[...command, ...LOG_OPTIONS].map((argument) => `    ${toXml(argument)}`),
    "  </array>",
    ...(configHome
      ? [
          "  <key>EnvironmentVariables</key>",
          "  <dict>",
          "    <key>XDG_CONFIG_HOME</key>",
          `    ${toXml(configHome)}`,
          "  </dict>",
        ]
      : []),
    "  <key>RunAtLoad</key>",
    "  <true/>",
    "  <key>KeepAlive</key>",
    "  <true/>",
    "  <key>StandardOutPath</key>",
    `  ${log}`,
    "  <key>StandardErrorPath</key>",
    `  ${log}`,
    "</dict>",
    "</plist>",
    "END",
    `launchctl bootstrap gui/$(id -u) ${path}`,
    "",
    `Its state:  launchctl print gui/$(id -u)/${LABEL}`,
    `Its log:    tail -F ~/Library/Logs/${LABEL}.log`,
    `To remove it, or before you install it again: ${PROGRAM} service uninstall`,
  ];
  return {
    install: install.join("\n"),
    uninstall: [
      "Run these commands in a terminal:",
      "",
      `launchctl bootout gui/$(id -u)/${LABEL}`,
      `rm ${path}`,
    ].join("\n"),
    status: `launchctl print gui/$(id -u)/${LABEL}`,
    variables: `write them into the property list, under the key EnvironmentVariables, and make it private: chmod 600 ${path}`,
  };
}

/**
 * For the task scheduler of Windows. `schtasks` is not used: its tasks end after three days, and when a laptop runs on
 * its battery. A loop starts the agent again, because the scheduler does so only for a task that could not be started.
 */
function buildWindowsInstructions(command: string[], { environment, home }: Machine): Instructions {
  const logs = `${environment["LOCALAPPDATA"] || `${home}\\AppData\\Local`}\\${LABEL}`;
  const log = `${logs}\\${LABEL}.log`;
  rejectVariables([...command, log]);
  const call = [...command, ...LOG_OPTIONS].map(quotePowerShell).join(" ");
  const loop = `while ($true) { & ${call} *>> ${quotePowerShell(log)}; Start-Sleep ${RESTART_DELAY_S} }`;
  const options = `-NoProfile -WindowStyle Hidden -Command "${loop}"`;
  const install = [
    "Run these commands in PowerShell; if access is denied, in one that you start as administrator.",
    "The service starts now, and whenever you log in.",
    "",
    `New-Item -ItemType Directory -Force ${quotePowerShell(logs)} | Out-Null`,
    `$action = New-ScheduledTaskAction -Execute powershell.exe -Argument ${quotePowerShell(options)}`,
    '$trigger = New-ScheduledTaskTrigger -AtLogOn -User "$env:USERDOMAIN\\$env:USERNAME"',
    "$settings = New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries",
    `Register-ScheduledTask ${LABEL} -Action $action -Trigger $trigger -Settings $settings -Force`,
    `Start-ScheduledTask ${LABEL}`,
    "",
    `Its state:  Get-ScheduledTask ${LABEL}`,
    `Its log:    Get-Content -Wait ${quotePowerShell(log)}`,
    `To remove it, or before you install it again: ${PROGRAM} service uninstall`,
  ];
  return {
    install: install.join("\n"),
    uninstall: [
      "Run these commands in PowerShell; if access is denied, in one that you start as administrator:",
      "",
      `Stop-ScheduledTask ${LABEL}`,
      `Unregister-ScheduledTask ${LABEL} -Confirm:$false`,
    ].join("\n"),
    status: `powershell Get-ScheduledTask ${LABEL}`,
    variables: "set them for your user with setx NAME value, and log in again",
  };
}

/** The task scheduler replaces `%NAME%` in a command, and nothing protects it. @throws SettingsError */
function rejectVariables(texts: string[]): void {
  const text = texts.find((value) => /%[^%]+%/.test(value));
  if (text === undefined) return;
  throw new SettingsError(
    `${text} has two percent signs, between which a task of Windows expects a variable; rename the directory or the file`,
  );
}

/** A literal of PowerShell, which also accepts typographic quotation marks (about_Quoting_Rules). */
function quotePowerShell(text: string): string {
  return `'${text.replace(/['\u2018-\u201b]/g, "$&$&")}'`;
}

function toXml(text: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<string>${escaped}</string>`;
}
