/** `underpass service` with a `systemctl` that records its calls, and with the real checker of units. */
import { execFileSync, spawnSync } from "node:child_process";
import { chmod, copyFile, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
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
async function service(args: string[], systemctl?: string, variables: Record<string, string> = {}) {
  const bin = join(directory, "bin");
  const calls = join(directory, "calls");
  await mkdir(bin, { recursive: true });
  if (systemctl !== undefined) {
    await writeFile(join(bin, "systemctl"), `#!/bin/sh\necho "$@" >> ${calls}\n${systemctl}\n`);
    await chmod(join(bin, "systemctl"), 0o755);
  }
  const PATH = systemctl === undefined ? bin : [bin, process.env.PATH].join(delimiter);
  const env = { PATH, XDG_CONFIG_HOME: join(directory, "config"), ...variables };
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
  });

  test("the command in the unit can be run", async () => {
    await install("exit 0");
    const unit = await readFile(unitPath(), "utf8");
    const [, line = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
    const command = [...line.matchAll(/"([^"]*)"/g)].map(([, argument]) => argument!);
    const version = execFileSync(command[0]!, [command[1]!, "version"], { encoding: "utf8" });
    expect(version).toMatch(/^underpass \d/);
  });

  test("install again replaces the unit and starts the service again", async () => {
    await install("exit 0");
    await writeFile(unitPath(), "[Unit]\nDescription=older\n");
    const { code, calls } = await install("exit 0");
    expect(code).toBe(0);
    expect(calls).toHaveLength(8);
    expect(calls.slice(4)).toEqual(calls.slice(0, 4));
    expect(await readFile(unitPath(), "utf8")).toContain("Description=Underpass tunnels");
  });

  test("every user may read the unit, which names the secrets' files only", async () => {
    await install("exit 0");
    expect((await stat(unitPath())).mode & 0o777).toBe(0o644);
    const unit = await readFile(unitPath(), "utf8");
    expect(unit).toContain(`EnvironmentFile=-${join(directory, "config/underpass/service.env")}`);
    expect(unit).not.toContain(SECRET);
  });

  test("install names the variables' file when the service lacks those of the shell", async () => {
    const file = join(directory, "config/underpass/service.env");
    const env = { SUBDOMAIN: "other" };
    const args = ["install", "--config", config];
    expect((await service(args, "exit 0", env)).stdout).toContain(`lines to ${file}`);
    expect((await install("exit 0")).stdout).not.toContain("variables");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, "SUBDOMAIN=other\n");
    expect((await service(args, "exit 0", env)).stdout).not.toContain("variables");
  });

  test("install does not count a token that only the shell has", async () => {
    await writeFile(config, "version: 1\nserver: http://127.0.0.1:9\ntunnels: {web: {local: 1}}\n");
    const token = { UNDERPASS_TOKEN: Buffer.from(SECRET).toString("base64") };
    const args = ["install", "--config", config];
    const rejected = await service(args, "exit 0", token);
    expect(rejected).toMatchObject({ code: 1, calls: [""] });
    expect(rejected.stderr).toContain("the service does not have UNDERPASS_TOKEN of this shell");
    const file = join(directory, "config/underpass/service.env");
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `UNDERPASS_TOKEN=${token.UNDERPASS_TOKEN}\n`, { mode: 0o600 });
    const { code, stdout, stderr } = await service(args, "exit 0");
    expect(code).toBe(0);
    const unit = await readFile(unitPath(), "utf8");
    expect(unit + stdout + stderr).not.toContain(token.UNDERPASS_TOKEN);
  });

  test("install checks the configuration first", async () => {
    await writeConfig("  web: {local: 3000, colour: red}");
    const { code, stderr, calls } = await install("exit 0");
    expect({ code, calls }).toEqual({ code: 2, calls: [""] });
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

  test.each([
    ["has failed", "failed", "failed"],
    ["is started again and again", "activating", "auto-restart"],
  ])("status of a service that %s says where the reason is", async (_, active, sub) => {
    const printed = `LoadState=loaded\\nActiveState=${active}\\nSubState=${sub}\\nMainPID=0\\n`;
    const { code, stdout } = await service(["status"], `printf "${printed}"`);
    expect(code).toBe(1);
    expect(stdout).toContain(`State    ${active} (${sub})\n`);
    expect(stdout).toMatch(/say why: journalctl --user -u underpass -n 20 --no-pager\n$/);
  });

  test("without systemd, status and uninstall agree that nothing is installed", async () => {
    const status = await service(["status"]);
    expect(status).toMatchObject({ code: 1, stderr: "" });
    expect(status.stdout).toMatch(/^No service is installed; to install it: /);
    const uninstall = await service(["uninstall"]);
    expect(uninstall).toMatchObject({ code: 0, stderr: "", stdout: "No service is installed.\n" });
  });

  test("without systemd, status and uninstall of an installed service fail for that reason", async () => {
    await install("exit 0");
    await rm(join(directory, "bin"), { recursive: true });
    for (const action of ["status", "uninstall"]) {
      const { code, stderr } = await service([action]);
      expect(code).toBe(1);
      expect(stderr).toContain("systemd does not run on this machine");
    }
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
    ["no systemd", undefined, "systemd does not run on this machine"],
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
});

describe("the unit", () => {
  const options = {
    command: [process.execPath, '/opt/100% "new"/$x\\underpass.js', "start", "--all"],
    environmentFile: "/home/me/50% %h/underpass/service.env",
    configHome: "/home/me/con fig",
  };

  test("escapes what systemd would replace in a path", () => {
    const unit = buildSystemdUnit({ ...options, user: undefined });
    expect(unit).toContain(String.raw`"/opt/100%% \"new\"/$$x\\underpass.js"`);
    expect(unit).toContain("\nEnvironmentFile=-/home/me/50%% %%h/underpass/service.env\n");
  });

  test("of the system runs as the user, without further rights", () => {
    const unit = buildSystemdUnit({ ...options, user: "me" });
    expect(unit).toContain("\nUser=me\n");
    expect(unit).toContain("\nCapabilityBoundingSet=\n");
    expect(unit).toContain("\nWantedBy=multi-user.target\n");
  });

  test.runIf(hasSystemdAnalyze)("names a program whose path has special characters", async () => {
    const program = join(directory, "50% $HOME x %h", "underpass");
    await mkdir(dirname(program));
    await copyFile(process.execPath, program);
    const build = (path: string) =>
      buildSystemdUnit({ ...options, command: [path, "start"], user: undefined });
    expect(await verify("special.service", build(program), "--user")).toBe("");
    const missing = await verify("missing.service", build(`${program}-2`), "--user");
    expect(missing).toContain("is not executable");
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
