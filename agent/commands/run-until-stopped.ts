/** Runs a tunnel until the user stops it or the server rejects it. */
import { keepMemorySmall } from "../tunnel/garbage-collection.ts";
import { stopWithNpx } from "./stop-with-npx.ts";
import type { Output } from "../output/output.ts";
import type { RejectionError } from "../rejection-error.ts";

interface Stoppable {
  on(event: "rejected", listener: (rejection: RejectionError) => void): unknown;
  start(): Promise<void> | void;
  close(): Promise<void> | void;
}

/** @returns the exit code. */
export function runUntilStopped(tunnel: Stoppable, output: Output): Promise<number> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
      void Promise.resolve(tunnel.close()).then(() => {
        output.end();
        resolve(0);
      });
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
    stopWithNpx(stop);
    tunnel.on("rejected", (rejection) => {
      output.end(rejection);
      resolve(1);
    });
    Promise.resolve(tunnel.start()).catch(reject);
    keepMemorySmall();
  });
}
