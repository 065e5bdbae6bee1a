/**
 * The ways in which a user stops a command: Ctrl-C, a signal, and the end of npx.
 *
 * Under npx, this process is the child of a shell, which is a child of npm. A Ctrl-C at a terminal reaches all of them,
 * but npm passes a signal that was sent to it alone only to the shell, which does not pass it on.
 */
import { readFileSync } from "node:fs";

const CHECK_INTERVAL_MS = 500;
/** As shells report a command that the signal has ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };

/** Calls `stop` after each signal, and when npx has ended. @returns a function that ends the watch. */
export function watchForStop(stop: () => void): () => void {
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  const npxTimer = watchNpx(stop);
  return () => {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    clearInterval(npxTimer);
  };
}

/**
 * Ends the process at once when a signal stops it again while it waits for requests. The listeners of its exit restore the
 * terminal. @returns a function that ends this.
 */
export function exitOnSignal(): () => void {
  const exitOnInterrupt = (): never => process.exit(EXIT_CODES.SIGINT);
  const exitOnTermination = (): never => process.exit(EXIT_CODES.SIGTERM);
  process.on("SIGINT", exitOnInterrupt);
  process.on("SIGTERM", exitOnTermination);
  return () => {
    process.off("SIGINT", exitOnInterrupt);
    process.off("SIGTERM", exitOnTermination);
  };
}

/** Calls `stop` once when npm or its shell has ended. @returns undefined unless npx started this process. */
function watchNpx(stop: () => void): NodeJS.Timeout | undefined {
  if (process.env.npm_command !== "exec") return undefined;
  const shell = process.ppid;
  const npm = findParent(shell);
  const timer = setInterval(() => {
    if (process.ppid === shell && findParent(shell) === npm) return;
    clearInterval(timer);
    stop();
  }, CHECK_INTERVAL_MS).unref();
  return timer;
}

/** @returns undefined on systems without /proc, where the shell of npm replaces itself by this process. */
function findParent(pid: number): number | undefined {
  try {
    // The name of the program, in parentheses, may contain spaces.
    const [, fields = ""] = /^.*\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "latin1")) ?? [];
    return Number(fields.split(" ")[1]);
  } catch {
    return undefined;
  }
}
