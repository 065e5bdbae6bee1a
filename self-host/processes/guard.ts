/**
 * Ends the child processes when this process is killed with `kill -9` and can't do it itself. A shell reads their ids
 * from a pipe, which the kernel closes together with this process.
 */
import { spawn, type ChildProcess } from "node:child_process";

/** Each line adds a process (`+ <id> <signal>`) or removes one (`- <id>`). */
const SCRIPT = `
signals=
while read -r action id signal; do
  case $action in
    +) signals="$signals $id:$signal " ;;
    -) signals=$(printf %s "$signals" | sed "s/ $id:[A-Z]* //") ;;
  esac
done
for entry in $signals; do kill -s "\${entry#*:}" "\${entry%:*}" 2>/dev/null; done
`;

let guard: ChildProcess | undefined;

/** @param signal sent to the process when this process has been killed. */
export function guardProcess(pid: number, signal: NodeJS.Signals): void {
  guard ??= startGuard();
  guard.stdin?.write(`+ ${pid} ${signal.replace(/^SIG/, "")}\n`);
}

/** The process has exited: its id may be given to another one. */
export function releaseProcess(pid: number): void {
  guard?.stdin?.write(`- ${pid}\n`);
}

function startGuard(): ChildProcess {
  // In a group of its own, because a Ctrl-C at the terminal must not end it before the others.
  const child = spawn("/bin/sh", ["-c", SCRIPT], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: "/usr/bin:/bin" },
  });
  child.on("error", () => undefined);
  child.stdin.on("error", () => undefined);
  // This process may exit while the guard runs.
  child.unref();
  (child.stdin as unknown as { unref(): void }).unref();
  return child;
}
