/**
 * Each transferred chunk leaves a dead buffer outside of V8's heap, where V8 lets some 64 MB accumulate before it collects
 * garbage. A collection of young objects frees these buffers and takes about a millisecond. One for every
 * `COLLECT_EVERY_BYTES` keeps the memory of a long transfer as small as that of a short one.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const COLLECT_EVERY_BYTES = 16 * 1024 * 1024;

type Collect = (options: { type: "minor" }) => void;

let collect: Collect | undefined;
let transferredBytes = 0;

/** Must be called for every chunk that is sent or received. */
export function collectAfterTransfer(bytes: number): void {
  transferredBytes += bytes;
  if (transferredBytes < COLLECT_EVERY_BYTES) return;
  transferredBytes = 0;
  collect ??= exposeCollect();
  collect({ type: "minor" });
}

/** V8 exposes its collector only to contexts that are created after the flag is set. */
function exposeCollect(): Collect {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as Collect;
}
