/** Installs the service with systemd: in the user's own manager, or for the system. */
import { execFile } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileExists } from "../disk/file-exists.ts";
import { SettingsError } from "../settings-error.ts";
import type { Machine } from "./machine.ts";
import { findServiceUser, type ServiceScope, type ServiceUser } from "./service-user.ts";
import { buildSystemdUnit } from "./systemd-unit.ts";
import { PROGRAM } from "../program.ts";

const UNIT = "underpass.service";
const SYSTEMCTL_MAX_MS = 60_000;
const PROPERTIES = ["LoadState", "ActiveState", "SubState", "MainPID", "ActiveEnterTimestamp"];

export interface ServiceStatus {
  isInstalled: boolean;
  isActive: boolean;
  /** `active (running)`. */
  state: string;
  pid: number | undefined;
  /** As systemd writes a time; empty when the service has not run. */
  since: string;
}

export class SystemdService {
  readonly #scope: ServiceScope;
  readonly #machine: Machine;

  constructor(scope: ServiceScope, machine: Machine) {
    this.#scope = scope;
    this.#machine = machine;
  }

  get unitPath(): string {
    const { environment, home, root } = this.#machine;
    if (this.#scope === "system") return join(root, "etc/systemd/system", UNIT);
    return join(environment["XDG_CONFIG_HOME"] || join(home, ".config"), "systemd/user", UNIT);
  }

  /** The command that prints the service's last messages, and then each new one. */
  get logCommand(): string {
    return `${this.#journal} -f`;
  }

  /** The command that prints the service's last messages. */
  get recentLogCommand(): string {
    return `${this.#journal} -n 20 --no-pager`;
  }

  /** @throws SettingsError when this process may not install or remove the unit. */
  rejectMissingRights(action: "install" | "uninstall"): void {
    if (this.#scope === "user" || this.#machine.uid === 0) return;
    throw new SettingsError(`--system needs root; run: sudo ${PROGRAM} service ${action} --system`);
  }

  /** The user whose logins the service uses. @throws SettingsError */
  findUser(): Promise<ServiceUser> {
    return findServiceUser(this.#scope, this.#machine);
  }

  /** The file with variables for underpass.yml. */
  getEnvironmentFile({ settingsDirectory }: ServiceUser): string {
    if (this.#scope === "system") return join(this.#machine.root, "etc/underpass/service.env");
    return join(settingsDirectory, "service.env");
  }

  /** Writes the unit, enables it, and starts it; a running service starts again. @throws SettingsError */
  async install(command: string[], user: ServiceUser): Promise<void> {
    this.rejectMissingRights("install");
    const [program = ""] = command;
    if (/["'\\]/.test(program)) {
      throw new SettingsError(
        `systemd can't run ${program}, because its path has a quotation mark or a backslash; move the program`,
      );
    }
    // Fails before anything is written when there is no systemd.
    await this.#systemctl("show", "--property=Version");
    const unit = buildSystemdUnit({
      command,
      environmentFile: this.getEnvironmentFile(user),
      configHome: user.configHome,
      user: this.#scope === "system" ? (user.name ?? "root") : undefined,
    });
    await mkdir(dirname(this.unitPath), { recursive: true });
    await writeFile(this.unitPath, unit, { mode: 0o644 });
    await this.#systemctl("daemon-reload");
    await this.#systemctl("enable", UNIT);
    await this.#systemctl("restart", UNIT);
  }

  /** @throws SettingsError */
  async readStatus(): Promise<ServiceStatus> {
    const properties = await this.#readProperties();
    const { LoadState, ActiveState = "unknown", SubState = "" } = properties;
    return {
      isInstalled: LoadState === "loaded",
      isActive: ActiveState === "active",
      state: SubState === "" ? ActiveState : `${ActiveState} (${SubState})`,
      pid: Number(properties["MainPID"]) || undefined,
      since: properties["ActiveEnterTimestamp"] ?? "",
    };
  }

  /** Stops the service and removes its unit. @returns false when none was installed. @throws SettingsError */
  async uninstall(): Promise<boolean> {
    this.rejectMissingRights("uninstall");
    if (!(await this.hasUnit())) return false;
    await this.#systemctl("disable", "--now", UNIT);
    await rm(this.unitPath);
    await this.#systemctl("daemon-reload");
    return true;
  }

  hasUnit(): Promise<boolean> {
    return fileExists(this.unitPath);
  }

  /** Whether the user's manager starts at boot and goes on after the user has logged out. */
  async isLingering({ name }: ServiceUser): Promise<boolean> {
    return (
      name !== undefined &&
      (await fileExists(join(this.#machine.root, "var/lib/systemd/linger", name)))
    );
  }

  get #journal(): string {
    return `journalctl ${this.#scope === "system" ? "" : "--user "}-u underpass`;
  }

  async #readProperties(): Promise<Record<string, string>> {
    try {
      const output = await this.#systemctl("show", UNIT, `--property=${PROPERTIES.join(",")}`);
      return Object.fromEntries(
        output.split("\n").map((line) => [line.split("=")[0]!, line.slice(line.indexOf("=") + 1)]),
      );
    } catch (error) {
      // Nothing is installed where nothing could be. `uninstall` says the same.
      if (await this.hasUnit()) throw error;
      return { LoadState: "not-found", ActiveState: "inactive", SubState: "dead" };
    }
  }

  /** @returns the output. @throws SettingsError */
  #systemctl(...args: string[]): Promise<string> {
    const all = this.#scope === "system" ? args : ["--user", ...args];
    const options = { timeout: SYSTEMCTL_MAX_MS, env: this.#machine.environment };
    return new Promise((resolve, reject) => {
      execFile("systemctl", all, options, (error, stdout, stderr) => {
        if (!error) return resolve(stdout);
        void this.#describeFailure(all, error, stderr).then((message) =>
          reject(new SettingsError(message)),
        );
      });
    });
  }

  async #describeFailure(
    args: string[],
    error: Error & { code?: unknown },
    stderr: string,
  ): Promise<string> {
    // sd_booted(3): this directory exists where systemd is the first process.
    const isRunning = await fileExists(join(this.#machine.root, "run/systemd/system"));
    const hasNoManager = /connect to (?:\S+ scope )?bus|not been booted/i.test(stderr);
    if (error.code === "ENOENT" || (hasNoManager && !isRunning)) {
      return `systemd does not run on this machine; let its own service manager run: ${PROGRAM} start --all`;
    }
    if (hasNoManager && this.#scope === "user") {
      const caller = this.#machine.environment["SUDO_USER"];
      return this.#machine.uid === 0 && caller
        ? `root has no systemd manager of its own here; run the command without sudo for a service of ${caller}, or add --system`
        : "this user has no systemd manager here (as after su); log in as the user, or install a service of the system with --system";
    }
    const [reason = ""] = stderr.trim().split("\n");
    return `systemctl ${args.join(" ")} failed${reason === "" ? "" : `: ${reason}`}`;
  }
}
