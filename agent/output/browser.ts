/** Opens an address in the browser of the person at this machine. */
import { spawn } from "node:child_process";

/** Without a shell: an address from a server must not be read as a command. */
const PROGRAMS: Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/**
 * Does nothing on a machine that no person sits at: over SSH, or without a display.
 * @param url an http(s) address; any other one is not opened. @returns whether a program to open it was started.
 */
export async function openInBrowser(url: URL): Promise<boolean> {
  const isWeb = url.protocol === "http:" || url.protocol === "https:";
  if (!isWeb || !hasDisplay(process.platform, process.env)) return false;
  const [program, ...args] = PROGRAMS[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...args, url.href], { detached: true, stdio: "ignore" });
  child.unref();
  return new Promise((resolve) => {
    child.once("spawn", () => resolve(true));
    child.once("error", () => resolve(false));
  });
}

/** @returns whether a browser's window would appear in front of the person who typed the command. */
export function hasDisplay(platform: NodeJS.Platform, env: NodeJS.ProcessEnv): boolean {
  if (env["SSH_CONNECTION"] || env["SSH_TTY"]) return false;
  if (platform === "darwin" || platform === "win32") return true;
  return Boolean(env["DISPLAY"] || env["WAYLAND_DISPLAY"]);
}
