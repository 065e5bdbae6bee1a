/** Puts text into the clipboard of the person at this machine. */
import { spawn } from "node:child_process";
import { hasDisplay } from "./browser.ts";

/** A program that hangs, for example because no display server answers, is ended. */
const COPY_MAX_MS = 2_000;

type Command = readonly [program: string, ...args: string[]];

/** @returns the programs to try in turn; none over SSH or without a display, where a terminal may have the clipboard. */
function listClipboardCommands(
  platform: NodeJS.Platform,
  env: NodeJS.ProcessEnv,
): readonly Command[] {
  // Windows programs run inside of WSL, too.
  if (env["WSL_DISTRO_NAME"] && !env["SSH_CONNECTION"]) return [["clip.exe"]];
  if (!hasDisplay(platform, env)) return [];
  if (platform === "darwin") return [["pbcopy"]];
  if (platform === "win32") return [["clip.exe"]];
  return [
    ...(env["WAYLAND_DISPLAY"] ? [["wl-copy"] as const] : []),
    ...(env["DISPLAY"]
      ? [["xclip", "-selection", "clipboard"] as const, ["xsel", "--clipboard", "--input"] as const]
      : []),
  ];
}

/** @returns whether a program has taken the text. */
export async function copyToClipboard(text: string): Promise<boolean> {
  for (const command of listClipboardCommands(process.platform, process.env)) {
    if (await runWithInput(command, text)) return true;
  }
  return false;
}

/** Without a shell: a text from a server must not be read as a command. */
function runWithInput([program, ...args]: Command, input: string): Promise<boolean> {
  return new Promise((resolve) => {
    const stdio = ["pipe", "ignore", "ignore"] as const;
    const child = spawn(program, args, { stdio: [...stdio], timeout: COPY_MAX_MS });
    child.once("error", () => resolve(false));
    child.once("exit", (code) => resolve(code === 0));
    // A program that ends without reading closes the pipe; its exit code tells.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
  });
}
