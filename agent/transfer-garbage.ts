/**
 * Each chunk that passes leaves a dead buffer behind, outside of V8's heap, where V8 lets some 64 MB gather
 * before it looks. A collection of young objects finds them at once and takes about a millisecond; asking
 * for one each `COLLECT_EVERY_BYTES` keeps a long transfer as small as a short one.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const COLLECT_EVERY_BYTES = 16 * 1024 * 1024;

type Collect = (options: { type: "minor" }) => void;

let collect: Collect | undefined;
let transferredBytes = 0;

/** To be told of every chunk. */
export function countTransfer(bytes: number): void {
  transferredBytes += bytes;
  if (transferredBytes < COLLECT_EVERY_BYTES) return;
  transferredBytes = 0;
  collect ??= exposeCollect();
  collect({ type: "minor" });
}

/** V8 hands out its collector to contexts that are made after the flag is set. */
function exposeCollect(): Collect {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as Collect;
}
