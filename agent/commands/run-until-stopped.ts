/** Runs a tunnel until the user stops it or the server rejects it. */
import { keepMemorySmall } from "../tunnel/garbage-collection.ts";
import { watchForStop } from "./watch-for-stop.ts";
import type { Output } from "../output/output.ts";
import type { RejectionError } from "../rejection-error.ts";

interface Stoppable {
  on(event: "rejected", listener: (rejection: RejectionError) => void): unknown;
  start(): Promise<void> | void;
  close(): Promise<void> | void;
  /** Reads its configuration again. Left out when it has none: SIGHUP stops it then. */
  reload?: () => void;
  /** How many requests `close` waits for. Left out when it waits for none. */
  readonly openRequests?: number;
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
      const countOpen = (): number => tunnel.openRequests ?? 0;
      if (countOpen() > 0) output.stopping?.(countOpen);
      void Promise.resolve(tunnel.close()).then(() => end(0));
    }, tunnel.reload);
    tunnel.on("rejected", (rejection) => end(1, rejection));
    Promise.resolve(tunnel.start()).catch(reject);
    keepMemorySmall();
  });
}
