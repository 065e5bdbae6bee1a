/** The ways in which a user stops a command: Ctrl-C, a signal, and the end of npx. */
import { watchNpx } from "./npx/watch-npx.ts";

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
