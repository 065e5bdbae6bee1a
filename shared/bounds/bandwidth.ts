const BITS_PER_BYTE = 8;

/** @param mbps a bandwidth in megabits (10^6 bits) a second. */
export function toBytesPerSecond(mbps: number): number {
  return (mbps * 1_000_000) / BITS_PER_BYTE;
}
