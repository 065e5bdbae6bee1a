/** What `underpass service` prints on macOS and Windows. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { install, status, uninstall } from "../../../../agent/commands/service.ts";
import { findInstructions } from "../../../../agent/service/instructions.ts";
import type { Machine } from "../../../../agent/service/machine.ts";

const MAC: Machine = {
  platform: "darwin",
  environment: {},
  uid: 501,
  home: "/Users/Ann & Bob",
  root: "/",
};
const WINDOWS: Machine = {
  platform: "win32",
  environment: { LOCALAPPDATA: "C:\\Users\\O'Neil\\AppData\\Local" },
  uid: undefined,
  home: "C:\\Users\\O'Neil",
  root: "C:\\",
};

let printed: string;
beforeEach(() => {
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) =>
    Boolean((printed += String(text))),
  );
  return () => vi.restoreAllMocks();
});

const getInstructions = (command: string[], machine: Machine) =>
  findInstructions(command, machine)!;

describe("on macOS", () => {
  const command = ["/opt/a & <b>/node", "start", "--config", "/Users/Ann & Bob/50% $HOME.yml"];

  test("the property list has the command, escaped for XML", () => {
    const { install: text } = getInstructions(command, MAC);
    const [, list = ""] = /<array>(.*?)<\/array>/s.exec(text) ?? [];
    const parsed = [...list.matchAll(/<string>([^<>]*)<\/string>/g)].map(([, argument]) =>
      argument!.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&"),
    );
    expect(parsed).toEqual([...command, "--log-level", "warn"]);
    // The shell must not replace `$HOME` while it writes the file.
    expect(text).toContain("cat > ~/Library/LaunchAgents/underpass.plist <<'END'\n");
    expect(text).toContain("\nlaunchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/");
  });

  test("the log is a file of the user", () => {
    const { install: text } = getInstructions(command, MAC);
    const log = "<string>/Users/Ann &amp; Bob/Library/Logs/underpass.log</string>";
    expect(text.split(log)).toHaveLength(3);
    expect(text).not.toContain("/tmp");
  });

  test("the service gets XDG_CONFIG_HOME of the shell", () => {
    const machine = { ...MAC, environment: { XDG_CONFIG_HOME: "/Volumes/a & b" } };
    const { install: text } = getInstructions(command, machine);
    expect(text).toMatch(
      /<key>XDG_CONFIG_HOME<\/key>\s*<string>\/Volumes\/a &amp; b<\/string>\s*<\/dict>/,
    );
  });
});

describe("on Windows", () => {
  const command = ["C:\\Program Files\\nodejs\\node.exe", "start", "D:\\it’s 100% $x.yml"];

  test("the task runs the command, quoted for PowerShell twice", () => {
    const { install: text } = getInstructions(command, WINDOWS);
    const [, literal = ""] = /-Argument '(.*)'$/m.exec(text) ?? [];
    const options = literal.replaceAll("''", "'").replaceAll("’’", "’");
    const [, script = ""] = /^-NoProfile -WindowStyle Hidden -Command "([^"]*)"$/.exec(options)!;
    expect(script).toBe(
      "while ($true) { & 'C:\\Program Files\\nodejs\\node.exe' 'start' 'D:\\it’’s 100% $x.yml' '--log-level' 'warn'" +
        " *>> 'C:\\Users\\O''Neil\\AppData\\Local\\underpass\\underpass.log'; Start-Sleep 5 }",
    );
  });

  test("the task has no time limit, and runs on battery", () => {
    const { install: text } = getInstructions(command, WINDOWS);
    expect(text).toContain(
      "-ExecutionTimeLimit 0 -AllowStartIfOnBatteries -DontStopIfGoingOnBatteries",
    );
    expect(text).toContain("New-Item -ItemType Directory -Force 'C:\\Users\\O''Neil\\AppData");
  });

  test("a path that the task scheduler would change is rejected", () => {
    expect(() => getInstructions(["C:\\%TEMP%\\node.exe"], WINDOWS)).toThrow(
      /^C:\\%TEMP%\\node.exe has two percent signs, /,
    );
  });
});

describe.each([
  ["macOS", MAC, "launchctl bootout", "launchctl print gui/$(id -u)/underpass"],
  ["Windows", WINDOWS, "Unregister-ScheduledTask", "run: powershell Get-ScheduledTask underpass"],
])("on %s", (_, machine, removal, state) => {
  test("uninstall prints only the steps that remove the service", async () => {
    expect(await uninstall({ values: { system: false }, positionals: [] }, machine)).toBe(0);
    expect(printed).toContain(removal);
    expect(printed).not.toContain("bootstrap");
    expect(printed).not.toContain("Register-ScheduledTask underpass -Action");
  });

  test("status fails with the command that shows the state", async () => {
    const shown = status({ values: { system: false, json: true }, positionals: [] }, machine);
    await expect(shown).rejects.toThrow(state);
    expect(printed).toBe("");
  });

  test("--system is rejected", async () => {
    const values = { config: "underpass.yml", system: true };
    const rejected = install({ values, positionals: [] }, machine);
    await expect(rejected).rejects.toThrow("--system needs systemd");
    await expect(uninstall({ values: { system: true }, positionals: [] }, machine)).rejects.toThrow(
      "--system needs systemd",
    );
  });
});
