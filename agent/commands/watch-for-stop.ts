/** The ways in which a user stops a command: Ctrl-C, a signal, and the end of npx. */
import { watchNpx } from "./npx/watch-npx.ts";

/** As shells report a command that the signal has ended. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };

/** Calls `stop` after each signal, and when npx has ended or was interrupted. @returns a function that ends the watch. */
export function watchForStop(stop: () => void): () => void {
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  const endNpxWatch = watchNpx(stop);
  return () => {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    endNpxWatch();
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
