/** Waiting for a slow reader. */
import type { Writable } from "node:stream";

/** Resolves when a stream that could not take more can, or is closed. */
export function waitForDrain(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done).off("close", done);
      resolve();
    };
    stream.on("drain", done).on("close", done);
  });
}
