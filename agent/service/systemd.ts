/** Installs the service with systemd: in the user's own manager, or for the system. */
import { execFile } from "node:child_process";
import { access, mkdir, rm, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { getSettingsDirectory, SettingsError } from "../settings.ts";
import { buildSystemdUnit } from "./systemd-unit.ts";

const UNIT = "underpass.service";
const SYSTEM_UNIT_PATH = `/etc/systemd/system/${UNIT}`;
const SYSTEM_ENVIRONMENT_FILE = "/etc/underpass/service.env";
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
  readonly #isSystem: boolean;

  /** @param isSystem whether it is a unit of the system, which only root can change. */
  constructor(isSystem: boolean) {
    this.#isSystem = isSystem;
  }

  get unitPath(): string {
    if (this.#isSystem) return SYSTEM_UNIT_PATH;
    const base = process.env["XDG_CONFIG_HOME"] || join(homedir(), ".config");
    return join(base, "systemd/user", UNIT);
  }

  /** The command that prints the service's log. */
  get logCommand(): string {
    return `journalctl ${this.#isSystem ? "" : "--user "}-u underpass -f`;
  }

  /** Variables for underpass.yml. */
  get environmentFile(): string {
    return this.#isSystem ? SYSTEM_ENVIRONMENT_FILE : join(getSettingsDirectory(), "service.env");
  }

  /** Writes the unit, enables it, and starts it; a running service starts again. @throws SettingsError */
  async install(command: string[]): Promise<void> {
    this.#rejectMissingRights("install");
    // Fails before anything is written when there is no systemd.
    await this.#systemctl("show", "--property=Version");
    const unit = buildSystemdUnit({
      command,
      environmentFile: this.environmentFile,
      configHome: process.env["XDG_CONFIG_HOME"] || undefined,
      // Under sudo, the user who called it.
      user: this.#isSystem ? (process.env["SUDO_USER"] ?? userInfo().username) : undefined,
    });
    await mkdir(dirname(this.unitPath), { recursive: true });
    await writeFile(this.unitPath, unit, { mode: 0o644 });
    await this.#systemctl("daemon-reload");
    await this.#systemctl("enable", UNIT);
    await this.#systemctl("restart", UNIT);
  }

  /** @throws SettingsError */
  async readStatus(): Promise<ServiceStatus> {
    const output = await this.#systemctl("show", UNIT, `--property=${PROPERTIES.join(",")}`);
    const properties = Object.fromEntries(
      output.split("\n").map((line) => [line.split("=")[0]!, line.slice(line.indexOf("=") + 1)]),
    );
    const {
      LoadState,
      ActiveState = "unknown",
      SubState = "",
      MainPID,
      ActiveEnterTimestamp,
    } = properties;
    return {
      isInstalled: LoadState === "loaded",
      isActive: ActiveState === "active",
      state: SubState === "" ? ActiveState : `${ActiveState} (${SubState})`,
      pid: Number(MainPID) || undefined,
      since: ActiveEnterTimestamp ?? "",
    };
  }

  /** Stops the service and removes its unit. @returns false when none was installed. @throws SettingsError */
  async uninstall(): Promise<boolean> {
    this.#rejectMissingRights("uninstall");
    if (!(await exists(this.unitPath))) return false;
    await this.#systemctl("disable", "--now", UNIT);
    await rm(this.unitPath);
    await this.#systemctl("daemon-reload");
    return true;
  }

  /** Whether the user's manager starts at boot and goes on after the user has logged out. */
  isLingering(): Promise<boolean> {
    return exists(join("/var/lib/systemd/linger", userInfo().username));
  }

  #rejectMissingRights(action: string): void {
    if (!this.#isSystem || process.getuid?.() === 0) return;
    throw new SettingsError(`--system needs root; run: sudo underpass service ${action} --system`);
  }

  /** @returns the output. @throws SettingsError */
  #systemctl(...args: string[]): Promise<string> {
    const all = this.#isSystem ? args : ["--user", ...args];
    return new Promise((resolve, reject) => {
      execFile("systemctl", all, { timeout: SYSTEMCTL_MAX_MS }, (error, stdout, stderr) => {
        if (!error) return resolve(stdout);
        reject(new SettingsError(describeFailure(all, error, stderr)));
      });
    });
  }
}

function describeFailure(
  args: string[],
  error: Error & { code?: unknown },
  stderr: string,
): string {
  if (error.code === "ENOENT") {
    return "this machine has no systemd; let its own service manager run: underpass start --all";
  }
  if (/connect to (?:\S+ scope )?bus/i.test(stderr)) {
    return "this user has no systemd manager here (in a container, or after su); log in as the user, or use --system";
  }
  const [reason = ""] = stderr.trim().split("\n");
  return `systemctl ${args.join(" ")} failed${reason === "" ? "" : `: ${reason}`}`;
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
