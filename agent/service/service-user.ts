/** Which user's files and logins a service reads. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { parseEnv } from "node:util";
import { describeReadError } from "../config/config-file.ts";
import { getSettingsDirectory } from "../settings.ts";
import { SettingsError } from "../settings-error.ts";
import type { Machine } from "./machine.ts";
import { getErrorCode } from "../../shared/error-message.ts";

/** Whose service manager runs it: that of the user, or that of the system, which only root can change. */
export type ServiceScope = "user" | "system";

export interface ServiceUser {
  /** undefined when this process's user has no name, as in some containers. */
  name: string | undefined;
  home: string;
  /** Where the logins are. */
  settingsDirectory: string;
  /** `XDG_CONFIG_HOME`, when the service needs it. */
  configHome: string | undefined;
}

/**
 * The user of this process; for a service of the system, the one who called `sudo`. Nothing of root's environment is used for
 * the latter: its `XDG_CONFIG_HOME` leads to the logins of another user.
 * @throws SettingsError when that user does not exist.
 */
export async function findServiceUser(
  scope: ServiceScope,
  { environment, home, platform }: Machine,
): Promise<ServiceUser> {
  const name = getOwnName();
  const caller = environment["SUDO_USER"] || environment["DOAS_USER"];
  if (scope === "user" || !caller || caller === name) {
    const settingsDirectory = getSettingsDirectory(environment, home, platform);
    const configHome = environment["XDG_CONFIG_HOME"] || undefined;
    return { name, home, settingsDirectory, configHome };
  }
  const callerHome = await findHome(caller, environment);
  const settingsDirectory = getSettingsDirectory({}, callerHome, platform);
  return { name: caller, home: callerHome, settingsDirectory, configHome: undefined };
}

/**
 * The variables of the file that a service manager gives to the service; none when there is no such file.
 * @throws SettingsError when it can't be read.
 */
export async function readServiceEnvironment(path: string): Promise<NodeJS.ProcessEnv> {
  try {
    return parseEnv(await readFile(path, "utf8"));
  } catch (error) {
    if (getErrorCode(error) === "ENOENT") return {};
    throw new SettingsError(`can't read ${path}: ${describeReadError(error)}`);
  }
}

function getOwnName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

/** @returns the home directory from the system's list of users, which may be on another machine. @throws SettingsError */
function findHome(user: string, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile("getent", ["passwd", "--", user], { env }, (error, stdout) => {
      // name:password:uid:gid:comment:home:shell
      const home = stdout.split("\n")[0]?.split(":")[5];
      if (!error && home) resolve(home);
      else reject(new SettingsError(`this system has no user ${user}; check SUDO_USER`));
    });
  });
}
