/**
 * Notices when npx ends. Under npx, this process is the child of a shell, which is a child of npm. A Ctrl-C at a
 * terminal reaches all of them, but npm passes a signal that was sent to it alone only to the shell, and the shell does
 * not pass it on: SIGTERM ends the shell, and SIGINT does nothing before this process ends.
 */
import { readdirSync, readFileSync } from "node:fs";
import { InterruptDetector, type Runs } from "./interrupt-detector.ts";

const CHECK_INTERVAL_MS = 500;
/** Shells that stay while their command runs. Others replace themselves by it, and it gets npm's signals. */
const WAITING_SHELLS = new Set(["sh", "dash", "ash"]);

/**
 * Calls `stop` once: when npm or its shell has ended, or npm has passed a SIGINT to the shell.
 * @returns a function that ends the watch.
 */
export function watchNpx(stop: () => void): () => void {
  if (process.env.npm_command !== "exec") return () => undefined;
  const shell = process.ppid;
  const npm = findParent(shell);
  const interrupt = createInterruptDetector(shell, npm);
  const shouldStop = () =>
    process.ppid !== shell || findParent(shell) !== npm || interrupt?.isDetected() === true;
  const timer = setInterval(() => {
    if (!shouldStop()) return;
    end();
    stop();
  }, CHECK_INTERVAL_MS).unref();
  const end = () => {
    clearInterval(timer);
    interrupt?.end();
  };
  return end;
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

function createInterruptDetector(
  shell: number,
  npm: number | undefined,
): InterruptDetector | undefined {
  if (npm === undefined) return undefined;
  try {
    const isWaiting = WAITING_SHELLS.has(readName(shell)) && readName(npm).startsWith("npm");
    return isWaiting ? new InterruptDetector(() => readRuns(shell, npm)) : undefined;
  } catch {
    return undefined;
  }
}

function readName(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, "latin1").trim();
}

function readRuns(shell: number, npm: number): Runs {
  const tasks = `/proc/${npm}/task`;
  const threads = readdirSync(tasks).filter((thread) => Number(thread) !== npm);
  return {
    shell: countRuns(`/proc/${shell}/status`),
    npmThreads: new Map(threads.map((thread) => [thread, countRuns(`${tasks}/${thread}/status`)])),
  };
}

function countRuns(statusPath: string): number {
  const status = readFileSync(statusPath, "latin1");
  const switches = status.matchAll(/^(?:non)?voluntary_ctxt_switches:\s+(\d+)$/gm);
  return [...switches].reduce((sum, [, count]) => sum + Number(count), 0);
}
