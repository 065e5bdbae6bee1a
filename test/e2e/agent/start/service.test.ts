/** `underpass service` with a `systemctl` that records its calls, and with the real checker of units. */
import { execFileSync, spawnSync } from "node:child_process";
import { chmod, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import {
  buildLaunchdInstructions,
  buildWindowsInstructions,
} from "../../../../agent/service/instructions.ts";
import { buildSystemdUnit } from "../../../../agent/service/systemd-unit.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { runAgent } from "../../../harness/tunnel/agent.ts";

const SECRET = "hunter2-hunter2";
const hasSystemdAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;

let directory: string;
let config: string;
beforeEach(async () => {
  directory = await createTemporaryDir();
  config = join(directory, "my tunnels.yml");
  await writeFile(join(directory, "token"), SECRET);
  await writeConfig('  web: {local: 3000, subdomain: "${SUBDOMAIN:-shop}"}');
  return () => rm(directory, { recursive: true, force: true });
});

const writeConfig = (tunnel: string) =>
  writeFile(
    config,
    `version: 1\nserver: http://127.0.0.1:9\ntoken_file: token\ntunnels:\n${tunnel}\n`,
  );

const unitPath = () => join(directory, "config/systemd/user/underpass.service");

/** Runs `underpass service …` to its end. @param systemctl the body of a shell script that stands for it. */
async function service(args: string[], systemctl?: string) {
  const bin = join(directory, "bin");
  const calls = join(directory, "calls");
  await mkdir(bin, { recursive: true });
  if (systemctl !== undefined) {
    await writeFile(join(bin, "systemctl"), `#!/bin/sh\necho "$@" >> ${calls}\n${systemctl}\n`);
    await chmod(join(bin, "systemctl"), 0o755);
  }
  const PATH = systemctl === undefined ? bin : [bin, process.env.PATH].join(delimiter);
  const env = { PATH, XDG_CONFIG_HOME: join(directory, "config") };
  await using agent = await runAgent(["service", ...args], { env });
  const code = await agent.exit;
  const recorded = await readFile(calls, "utf8").catch(() => "");
  return { code, stdout: agent.stdout, stderr: agent.stderr, calls: recorded.trim().split("\n") };
}

const install = (systemctl?: string) => service(["install", "--config", config], systemctl);

/** The faults that systemd finds in a unit; none is an empty text. */
async function verify(name: string, unit: string, ...args: string[]): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, unit);
  const { stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...args, path], {
    encoding: "utf8",
    env: { ...process.env, XDG_RUNTIME_DIR: directory },
  });
  return stderr
    .split("\n")
    .filter((line) => line.includes(name))
    .join("\n");
}

describe.runIf(process.platform === "linux")("underpass service", () => {
  test("install writes a unit for this program and configuration, enables it and starts it", async () => {
    const { code, stdout, calls } = await install("exit 0");
    expect({ code, calls }).toEqual({
      code: 0,
      calls: [
        "--user show --property=Version",
        "--user daemon-reload",
        "--user enable underpass.service",
        "--user restart underpass.service",
      ],
    });
    const unit = await readFile(unitPath(), "utf8");
    expect(unit).toMatch(
      /^ExecStart="\/[^"]*node" "\/[^"]*\.js" "start" "--all" "--config" "[^"]*\/my tunnels\.yml"$/m,
    );
    expect(unit).toContain("Restart=always");
    expect(unit + stdout).not.toContain(SECRET);
    expect(stdout).toContain("loginctl enable-linger");
    expect(stdout).toContain(join(directory, "config/underpass/service.env"));
  });

  test("the command in the unit can be run", async () => {
    await install("exit 0");
    const unit = await readFile(unitPath(), "utf8");
    const [, line = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    const command = [...line.matchAll(/"([^"]*)"/g)].map(([, argument]) => argument!);
    const version = execFileSync(command[0]!, [command[1]!, "version"], { encoding: "utf8" });
    expect(version).toMatch(/^underpass \d/);
  });

  test("install checks the configuration first", async () => {
    await writeConfig("  web: {local: 3000, colour: red}");
    const { code, stderr, calls } = await install("exit 0");
    expect({ code, calls }).toEqual({ code: 1, calls: [""] });
    expect(stderr).toContain("my tunnels.yml:5:22: unknown key colour");
    await expect(stat(unitPath())).rejects.toThrow("ENOENT");
  });

  test("status prints the state, and exits with 1 unless the service runs", async () => {
    const running = await service(
      ["status"],
      'printf "LoadState=loaded\\nActiveState=active\\nSubState=running\\nMainPID=4711\\n"',
    );
    expect(running.code).toBe(0);
    expect(running.stdout).toMatch(/^State {4}active \(running\)\nProcess {2}4711\n/);
    const missing = await service(
      ["status"],
      'printf "LoadState=not-found\\nActiveState=inactive\\n"',
    );
    expect(missing.code).toBe(1);
    expect(missing.stdout).toContain("underpass service install");
    const json = await service(
      ["status", "--json"],
      'printf "LoadState=loaded\\nActiveState=failed\\nSubState=failed\\nMainPID=0\\n"',
    );
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ isActive: false, state: "failed (failed)" });
  });

  test("uninstall stops the service and removes its unit", async () => {
    await install("exit 0");
    const { code, calls } = await service(["uninstall"], "exit 0");
    expect(code).toBe(0);
    expect(calls.slice(-2)).toEqual([
      "--user disable --now underpass.service",
      "--user daemon-reload",
    ]);
    await expect(stat(unitPath())).rejects.toThrow("ENOENT");
    expect((await service(["uninstall"], "exit 0")).stdout).toBe("No service is installed.\n");
  });

  test.each([
    ["no systemd", undefined, "this machine has no systemd"],
    [
      "no manager of the user",
      'echo "Failed to connect to bus: No medium found" >&2; exit 1',
      "this user has no systemd manager here",
    ],
    [
      "another failure",
      'echo "Unit is masked." >&2; exit 1',
      "systemctl --user show --property=Version failed: Unit is masked.",
    ],
  ])("with %s it says so and leaves no unit", async (_, systemctl, message) => {
    const { code, stderr } = await install(systemctl);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    await expect(stat(unitPath())).rejects.toThrow("ENOENT");
  });

  test.runIf(process.getuid?.() !== 0)("--system needs root", async () => {
    const { code, stderr } = await service(["install", "--system", "--config", config], "exit 0");
    expect(code).toBe(1);
    expect(stderr).toContain("sudo underpass service install --system");
  });
});

describe("the unit", () => {
  const options = {
    command: [process.execPath, '/opt/100% "new"/$x\\underpass.js', "start", "--all"],
    environmentFile: "/home/me/.config/underpass/service.env",
    configHome: "/home/me/con fig",
  };

  test("escapes what systemd would replace in a path", () => {
    const unit = buildSystemdUnit({ ...options, user: undefined });
    expect(unit).toContain(String.raw`"/opt/100%% \"new\"/$$x\\underpass.js"`);
  });

  test("of the system runs as the user, without further rights", () => {
    const unit = buildSystemdUnit({ ...options, user: "me" });
    expect(unit).toContain("\nUser=me\n");
    expect(unit).toContain("\nCapabilityBoundingSet=\n");
    expect(unit).toContain("\nWantedBy=multi-user.target\n");
  });

  test.runIf(hasSystemdAnalyze)("is valid for systemd", async () => {
    const user = buildSystemdUnit({ ...options, user: undefined });
    expect(await verify("underpass-user.service", user, "--user")).toBe("");
    const system = buildSystemdUnit({ ...options, user: "daemon" });
    expect(await verify("underpass-system.service", system)).toBe("");
    const invalid = user.replace("Restart=always", "Restart=sometimes");
    expect(await verify("underpass-invalid.service", invalid, "--user")).toContain("sometimes");
  });
});

test("on macOS and Windows the instructions are complete", () => {
  const command = ["/opt/a & b/node", "start"];
  const launchd = buildLaunchdInstructions(command);
  expect(launchd).toContain("<string>/opt/a &amp; b/node</string>");
  expect(launchd).toContain("launchctl bootstrap gui/$(id -u)");
  const windows = buildWindowsInstructions(["C:\\Program Files\\node.exe", "start"]);
  expect(windows).toContain(String.raw`/TR "\"C:\Program Files\node.exe\" \"start\""`);
});
