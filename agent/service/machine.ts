import { findHomeDirectory } from "../disk/home-directory.ts";

/** The machine that a service is installed on. Tests replace it. */
export interface Machine {
  platform: NodeJS.Platform;
  environment: NodeJS.ProcessEnv;
  /** The user id of this process; undefined on Windows. */
  uid: number | undefined;
  /** The home directory of this process's user. */
  home: string;
  /** The directory that contains `etc`, `run` and `var`. */
  root: string;
}

export const THIS_MACHINE: Machine = {
  platform: process.platform,
  environment: process.env,
  uid: process.getuid?.(),
  home: findHomeDirectory() ?? "/",
  root: "/",
};
