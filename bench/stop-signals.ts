/** Benchmarks and chaos experiments that are stopped (SIGINT, SIGTERM) end their programs and remove their files. */

/** @returns a signal that aborts when this process is asked to stop. The process itself continues, and has to end. */
export function catchStopSignals(): AbortSignal {
  const stopping = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const)
    process.on(name, () => stopping.abort(new Error(`stopped by ${name}`)));
  return stopping.signal;
}

/** Runs `work`. @throws the signal's reason as soon as the signal aborts, while `work` continues. */
export async function untilAborted<Result>(
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!signal) return work();
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
