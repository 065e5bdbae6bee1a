/** Runs a tunnel until the user stops it or the server rejects it. */
import { keepMemorySmall } from "../tunnel/garbage-collection.ts";
import { watchForStop } from "./watch-for-stop.ts";
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
    let isEnded = false;
    const end = (exitCode: number, rejection?: RejectionError): void => {
      if (isEnded) return;
      isEnded = true;
      endWatch();
      output.end(rejection);
      resolve(exitCode);
    };
    const endWatch = watchForStop(() => {
      // While requests in flight finish, another signal ends the process at once.
      endWatch();
      void Promise.resolve(tunnel.close()).then(() => end(0));
    });
    tunnel.on("rejected", (rejection) => end(1, rejection));
    Promise.resolve(tunnel.start()).catch(reject);
    keepMemorySmall();
  });
}
