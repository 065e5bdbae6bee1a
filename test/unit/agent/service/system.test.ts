/** `underpass service --system` on a machine whose directories, user and `systemctl` are replaced. */
import { chmod, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { delimiter, join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { install, status, uninstall } from "../../../../agent/commands/service.ts";
import { SystemdService } from "../../../../agent/service/systemd.ts";
import type { Machine } from "../../../../agent/service/machine.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";

const USER = "daemon";
const TOKEN = Buffer.from("a token").toString("base64");
const NO_BUS = 'echo "Failed to connect to bus: No medium found" >&2; exit 1';
const NOT_BOOTED =
  'echo "System has not been booted with systemd as init system (PID 1). Can\'t operate." >&2; exit 1';

let root: string;
let machine: Machine;
let printed: string;
beforeEach(async () => {
  root = await createTemporaryDir();
  const environment = {
    PATH: [join(root, "bin"), process.env.PATH].join(delimiter),
    HOME: join(root, "root"),
    SUDO_USER: USER,
  };
  machine = { platform: "linux", environment, uid: 0, home: environment.HOME, root };
  await mkdir(join(root, "run/systemd/system"), { recursive: true });
  await mkdir(join(root, "bin"));
  await writeProgram("systemctl", "exit 0");
  await writeProgram("getent", `echo "${USER}:x:1:1::${join(root, "home")}:/bin/sh"`);
  await writeFile(join(root, "underpass.yml"), "version: 1\ntunnels: {web: {local: 3000}}\n");
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) =>
    Boolean((printed += String(text))),
  );
  return async () => {
    vi.restoreAllMocks();
    await rm(root, { recursive: true });
  };
});

/** @param body of a shell script; its arguments are appended to the file `calls`. */
async function writeProgram(name: string, body: string): Promise<void> {
  const path = join(root, "bin", name);
  await writeFile(path, `#!/bin/sh\necho "${name} $*" >> "${join(root, "calls")}"\n${body}\n`);
  await chmod(path, 0o755);
}

async function writeLogin(settings: string): Promise<void> {
  await mkdir(join(root, settings), { recursive: true });
  const servers = { "https://tunnels.example": { token: TOKEN, label: "laptop" } };
  await writeFile(
    join(root, settings, "credentials.json"),
    JSON.stringify({ servers, defaultServer: "https://tunnels.example" }),
    { mode: 0o600 },
  );
}

const readCalls = () => readFile(join(root, "calls"), "utf8").catch(() => "");
const unitPath = () => join(root, "etc/systemd/system/underpass.service");
const runInstall = (system = true) =>
  install({ values: { config: join(root, "underpass.yml"), system }, positionals: [] }, machine);
const runStatus = (system: boolean) =>
  status({ values: { system, json: false }, positionals: [] }, machine);
const runUninstall = (system: boolean) =>
  uninstall({ values: { system }, positionals: [] }, machine);

describe.runIf(process.platform === "linux")("with sudo", () => {
  test("the service runs as the caller of sudo, with the caller's logins and not those of root", async () => {
    machine.environment["XDG_CONFIG_HOME"] = join(root, "root/settings");
    await writeLogin("home/.config/underpass");
    expect(await runInstall()).toBe(0);
    const unit = await readFile(unitPath(), "utf8");
    expect(unit).toContain(`\nUser=${USER}\n`);
    expect(unit).not.toContain("XDG_CONFIG_HOME");
    expect(unit).not.toContain(TOKEN);
    expect(printed).toContain(`User:   ${USER} (logins: ${join(root, "home/.config/underpass")})`);
    expect(printed).toContain("underpass service status --system\n");
    expect(printed).not.toContain("enable-linger");
    const calls = await readCalls();
    expect(calls).not.toContain("--user");
    expect(calls).toContain("systemctl restart underpass.service\n");
  });

  test("a login of root does not count", async () => {
    machine.environment["XDG_CONFIG_HOME"] = join(root, "root/settings");
    await writeLogin("root/settings/underpass");
    await expect(runInstall()).rejects.toThrow(
      `in ${join(root, "home/.config/underpass")}; run \`underpass login\` as ${USER}, or write token_file`,
    );
    await expect(stat(unitPath())).rejects.toThrow("ENOENT");
  });

  test("an unknown user is reported", async () => {
    await writeProgram("getent", "exit 2");
    await expect(runInstall()).rejects.toThrow(`this system has no user ${USER}`);
  });

  test("the message about a missing login names no other user for the own service", async () => {
    const rejected = runInstall(false);
    await expect(rejected).rejects.toThrow("run `underpass login`, or write token_file");
  });

  test("without --system, the message leads to the user's own service", async () => {
    await writeLogin("root/.config/underpass");
    await writeProgram("systemctl", NO_BUS);
    await expect(runInstall(false)).rejects.toThrow(
      `run the command without sudo for a service of ${USER}, or add --system`,
    );
  });
});

describe.runIf(process.platform === "linux")("the system's service", () => {
  test("of root itself uses root's settings", async () => {
    machine.environment["SUDO_USER"] = userInfo().username;
    machine.environment["XDG_CONFIG_HOME"] = join(root, "root/settings");
    await writeLogin("root/settings/underpass");
    expect(await runInstall()).toBe(0);
    const unit = await readFile(unitPath(), "utf8");
    expect(unit).toContain(`\nUser=${userInfo().username}\n`);
    expect(unit).toContain(`Environment="XDG_CONFIG_HOME=${join(root, "root/settings")}"`);
    expect(unit).toContain(`EnvironmentFile=-${join(root, "etc/underpass/service.env")}`);
  });

  test("needs root to be installed and removed, but not to show its state", async () => {
    machine.uid = 1_000;
    await expect(runInstall()).rejects.toThrow("run: sudo underpass service install --system");
    await expect(runUninstall(true)).rejects.toThrow(
      "run: sudo underpass service uninstall --system",
    );
    expect(await readCalls()).toBe("");
    expect(await runStatus(true)).toBe(1);
  });

  test.each([
    ["no bus", NO_BUS],
    ["another first process", NOT_BOOTED],
  ])("is not advised where systemd does not run: %s", async (_, systemctl) => {
    await writeLogin("home/.config/underpass");
    await writeLogin("root/.config/underpass");
    await rm(join(root, "run"), { recursive: true });
    await writeProgram("systemctl", systemctl);
    for (const isSystem of [true, false]) {
      const failure = runInstall(isSystem);
      await expect(failure).rejects.toThrow(/^systemd does not run on this machine; /);
      await expect(failure).rejects.not.toThrow("--system");
    }
  });

  test("is advised to a user without a manager, where systemd runs", async () => {
    machine.uid = 1_000;
    await writeLogin("root/.config/underpass");
    await writeProgram("systemctl", NO_BUS);
    await expect(runInstall(false)).rejects.toThrow("this user has no systemd manager here");
    await expect(runInstall(false)).rejects.toThrow("--system");
  });

  test("is not installed for a program that systemd can't run", async () => {
    machine.uid = 0;
    const service = new SystemdService("system", machine);
    const user = await service.findUser();
    await expect(service.install(['/opt/the "new" one/underpass'], user)).rejects.toThrow(
      "its path has a quotation mark",
    );
    expect(await service.hasUnit()).toBe(false);
  });

  test("is named when only the user's service is asked for", async () => {
    await mkdir(join(root, "etc/systemd/system"), { recursive: true });
    await writeFile(unitPath(), "");
    await writeProgram("systemctl", "echo LoadState=not-found");
    expect(await runStatus(false)).toBe(1);
    expect(printed).toContain("the system has one; run: underpass service status --system\n");
    expect(await runUninstall(false)).toBe(0);
    expect(printed).toContain("the system has one; run: underpass service uninstall --system\n");
  });
});
