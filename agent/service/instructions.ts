/** What a user does on systems whose service manager the agent does not control. */

const LABEL = "underpass";

/** For launchd: the complete property list, and the commands that load, show and remove it. */
export function buildLaunchdInstructions(command: string[]): string {
  const path = `~/Library/LaunchAgents/${LABEL}.plist`;
  return [
    `Write this to ${path}:`,
    "",
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    "<dict>",
    "  <key>Label</key>",
    `  <string>${LABEL}</string>`,
    "  <key>ProgramArguments</key>",
    "  <array>",
    ...command.map((argument) => `    <string>${escapeXml(argument)}</string>`),
    "  </array>",
    "  <key>RunAtLoad</key>",
    "  <true/>",
    "  <key>KeepAlive</key>",
    "  <true/>",
    "  <key>StandardOutPath</key>",
    "  <string>/tmp/underpass.log</string>",
    "  <key>StandardErrorPath</key>",
    "  <string>/tmp/underpass.log</string>",
    "</dict>",
    "</plist>",
    "",
    `Start it:   launchctl bootstrap gui/$(id -u) ${path}`,
    `Its state:  launchctl print gui/$(id -u)/${LABEL}`,
    `Remove it:  launchctl bootout gui/$(id -u)/${LABEL}; rm ${path}`,
  ].join("\n");
}

/** For the task scheduler of Windows: the commands that create, start, show and remove a task. */
export function buildWindowsInstructions(command: string[]): string {
  const task = command.map((argument) => `\\"${argument}\\"`).join(" ");
  return [
    "Run these in a command prompt. The task starts when you log in.",
    "",
    `Create it:  schtasks /Create /TN ${LABEL} /SC ONLOGON /TR "${task}"`,
    `Start it:   schtasks /Run /TN ${LABEL}`,
    `Its state:  schtasks /Query /TN ${LABEL}`,
    `Remove it:  schtasks /End /TN ${LABEL} & schtasks /Delete /TN ${LABEL} /F`,
  ].join("\n");
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
