import { expect, test } from "vitest";
import type { TunnelReport } from "../../../../durable-objects/rpc.ts";
import { MetricsReporter } from "../../../../durable-objects/tunnel/metrics/metrics-reporter.ts";

/** The values that are on disk. */
type Disk = Map<string, unknown>;

/** Each report that has arrived, with the disk at that moment. */
let arrivals: { report: TunnelReport; disk: Disk }[];

/** A reporter of an object that starts with this disk. @param isAnswerLost whether its reports arrive and seem to fail. */
function startReporter(disk: Disk, isAnswerLost = false): MetricsReporter {
  const kv = {
    get: (key: string) => structuredClone(disk.get(key)),
    put: (key: string, value: unknown) => void disk.set(key, structuredClone(value)),
    delete: (key: string) => disk.delete(key),
    list: () => [],
  };
  const storage = {
    kv,
    put: (key: string, value: unknown) => Promise.resolve(kv.put(key, value)),
    sync: () => Promise.resolve(),
  };
  const reportTunnel = (report: TunnelReport) => {
    arrivals.push({ report, disk: structuredClone(disk) });
    return isAnswerLost ? Promise.reject(new Error("the answer was lost")) : Promise.resolve();
  };
  return new MetricsReporter(
    storage as never,
    { scheduleBy: () => undefined } as never,
    { reportTunnel },
    {
      currentState: () => ({ agentConnected: true, lastSeenAtMs: 1, maintenance: false }),
      servingToken: () => undefined,
      endsAtMs: () => undefined,
    },
  );
}

test.each([
  ["has arrived", false],
  ["has arrived and seemed to fail", true],
])(
  "the first report after a crash is newer than every earlier one, also if the last of them %s just before",
  async (_, isAnswerLost) => {
    arrivals = [];
    const reporter = startReporter(new Map(), isAnswerLost);
    reporter.setTunnelId("tunnel");
    reporter.reportNow();
    for (let sent = 0; sent < 3; sent++) await reporter.send().catch(() => undefined);
    await startReporter(arrivals.at(-1)!.disk).send();
    const sequences = arrivals.map(({ report }) => report.sequence);
    expect(sequences).toHaveLength(4);
    expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
  },
);
