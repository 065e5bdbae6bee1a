import { vi, type MockInstance } from "vitest";

/** Until the result is disposed, `AbortSignal.timeout` takes a part of its time. The result records the calls. */
export function shortenTimeouts(divisor: number): MockInstance<typeof AbortSignal.timeout> {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  return vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms / divisor));
}
