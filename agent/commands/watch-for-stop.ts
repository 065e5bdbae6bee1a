/** The ways in which a user stops a command: Ctrl-C, a signal, a closed terminal or pipe, and the end of npx. */
import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { watchNpx } from "./npx/watch-npx.ts";

/** As shells report a command that the signal has ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };
/** Where the shell of npm replaces itself by this process, one Ctrl-C arrives twice: from the terminal, and from npm. */
const NPM_COPY_MAX_MS = 1_000;

/** The bits of a file's flags that say whether it can be read and written (fcntl(2)). */
const ACCESS_MODES = constants.O_RDONLY | constants.O_WRONLY | constants.O_RDWR;

/**
 * Calls `stop` once: at the first signal, when the output can no longer be read, or when npx has ended or was interrupted. A
 * second signal ends the process at once, while `stop` waits for what is in progress.
 * @param reload what SIGHUP requests unless the terminal was closed. Without it, the signal stops the command, or does nothing
 * under nohup.
 * @returns a function that ends the watch.
 */
export function watchForStop(stop: () => void, reload?: () => void): () => void {
  let endWatch = watchForSignal(() => {
    endWatch();
    endWatch = exitOnSignal();
    stop();
  }, reload);
  return () => endWatch();
}

function watchForSignal(stop: () => void, reload?: () => void): () => void {
  const onHangUp = createHangUpListener(stop, reload);
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  process.on("SIGHUP", onHangUp);
  process.stdout.on("error", stop);
  const endNpxWatch = watchNpx(stop);
  return () => {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    process.off("SIGHUP", onHangUp);
    process.stdout.off("error", stop);
    endNpxWatch();
  };
}

/**
 * Ends the process at once when a signal stops it again. The listeners of its exit restore the
 * terminal. The system and the shell both send SIGHUP when a terminal is closed, so that one does not end the wait.
 * @returns a function that ends this.
 */
function exitOnSignal(): () => void {
  const firstAtMs = Date.now();
  const isUnderNpm = process.env.npm_command !== undefined;
  /** @param signal left out when the key of the screen was pressed, which npm does not see. */
  const exit = (code: number, signal: NodeJS.Signals | undefined): void => {
    const isCopy = isUnderNpm && signal !== undefined && Date.now() - firstAtMs < NPM_COPY_MAX_MS;
    if (!isCopy) process.exit(code);
  };
  const exitOnInterrupt = (signal?: NodeJS.Signals): void => exit(EXIT_CODES.SIGINT, signal);
  const exitOnTermination = (signal: NodeJS.Signals): void => exit(EXIT_CODES.SIGTERM, signal);
  const ignore = (): void => undefined;
  process.on("SIGINT", exitOnInterrupt);
  process.on("SIGTERM", exitOnTermination);
  process.on("SIGHUP", ignore);
  process.stdout.on("error", ignore);
  return () => {
    process.off("SIGINT", exitOnInterrupt);
    process.off("SIGTERM", exitOnTermination);
    process.off("SIGHUP", ignore);
    process.stdout.off("error", ignore);
  };
}

function createHangUpListener(stop: () => void, reload: (() => void) | undefined): () => void {
  // On Windows, SIGHUP means that the console window was closed.
  if (process.platform === "win32") return stop;
  if (isUnderNohup()) return reload ?? (() => undefined);
  if (!reload) return stop;
  const hadTerminal = isTerminalOpen();
  return () => (hadTerminal && !isTerminalOpen() ? stop() : reload());
}

/**
 * Whether the command was started with nohup, to go on after its terminal is closed. nohup lets it ignore SIGHUP, which Node.js
 * undoes at its start. What stays is a standard input that can't be read: GNU nohup puts that in the place of a terminal.
 * @returns false on systems without /proc too.
 */
function isUnderNohup(): boolean {
  try {
    const [, flags = ""] = /^flags:\s+(\d+)$/m.exec(readFileSync("/proc/self/fdinfo/0", "latin1"))!;
    return (Number.parseInt(flags, 8) & ACCESS_MODES) === constants.O_WRONLY;
  } catch {
    return false;
  }
}

/** Whether this process has a terminal that can still be used. */
function isTerminalOpen(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
