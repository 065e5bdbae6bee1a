/** Collections of garbage that V8 does not begin by itself, because it sees no need for them. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const COLLECT_EVERY_BYTES = 2 * 1024 * 1024;
/** When loading and connecting are usually done. */
const START_MS = 3_000;

type Collect = (options: { type: "minor" | "major" }) => void;

let collect: Collect | undefined;
let transferredBytes = 0;

/**
 * Must be called for every chunk that is sent or received. Each leaves a dead buffer outside of V8's heap. After some
 * 16 MB of them V8 collects its whole heap, which took 40 % of the processor time of a long download. A collection of
 * young objects frees these buffers too and takes less than a millisecond. With one for every `COLLECT_EVERY_BYTES` V8
 * sees no need for others, and the memory of a long transfer stays as small as that of a short one. A received byte
 * leaves more than one: the chunks and the message.
 */
export function collectAfterTransfer(bytes: number): void {
  transferredBytes += bytes;
  if (transferredBytes < COLLECT_EVERY_BYTES) return;
  transferredBytes = 0;
  collectNow("minor");
}

/** For a command that runs for long, after its code is loaded. */
export function keepMemorySmall(): void {
  // By default V8 lets its space for young objects grow to 64 MiB. Transferred bytes are outside of it: 1,000 open
  // connections took 71 MiB with the default and 38 MiB with a small space, at the same speed.
  setFlagsFromString("--semi-space-growth-factor=1");
  // An idle agent allocates too little for V8 to free what loading has left. V8 follows this collection, which takes some
  // 25 ms, with one that returns 6 MiB to the system.
  setTimeout(collectNow, START_MS, "major").unref();
}

function collectNow(type: "minor" | "major"): void {
  collect ??= exposeCollect();
  collect({ type });
}

/** V8 exposes its collector only to contexts that are created after the flag is set. */
function exposeCollect(): Collect {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as Collect;
}
