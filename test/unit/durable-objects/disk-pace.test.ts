/** Objects that write to a slow disk. A simulated write holds up the process until the next pass of its event loop. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DiskPace, diskPace } from "../../../durable-objects/disk-pace.ts";
import { Captures } from "../../../durable-objects/tunnel/captures/captures.ts";
import { MetricsReporter } from "../../../durable-objects/tunnel/metrics/metrics-reporter.ts";
import { REPORT_BURST } from "../../../durable-objects/tunnel/metrics/report-pace.ts";

const TUNNELS = 20;
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** More than the pace remembers. */
const WRITES = 16;

let writeMs: number;
let pendingWrites: number;
let heldUpMs: number;
beforeEach(() => {
  [writeMs, pendingWrites, heldUpMs] = [0, 0, 0];
  // In the past, so that the other tests of this isolate do not wait.
  vi.useFakeTimers({ now: Date.UTC(2020) });
  vi.stubGlobal("scheduler", { wait: waitForPass });
});
afterEach(async () => {
  vi.useRealTimers();
  vi.stubGlobal("scheduler", { wait: () => Promise.resolve() });
  await measureWrites(diskPace);
  vi.unstubAllGlobals();
});

function waitForPass(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(() => {
      const heldUp = pendingWrites * writeMs;
      pendingWrites = 0;
      heldUpMs += heldUp;
      vi.setSystemTime(Date.now() + heldUp);
      resolve();
    }, ms);
  });
}

class SimulatedStorage {
  readonly values = new Map<string, unknown>();
  writes = 0;
  readonly sql = { databaseSize: 0 };
  readonly kv = {
    get: (key: string) => this.values.get(key),
    put: (key: string, value: unknown) => void this.put(key, value),
    delete: (key: string) => this.values.delete(key),
    list: ({ prefix }: { prefix: string }) =>
      [...this.values].filter(([key]) => key.startsWith(prefix)).sort(),
  };

  put(entries: string | Record<string, unknown>, value?: unknown): Promise<void> {
    const added = typeof entries === "string" ? { [entries]: value } : entries;
    for (const [key, each] of Object.entries(added)) this.values.set(key, structuredClone(each));
    this.writes += 1;
    pendingWrites += 1;
    return Promise.resolve();
  }
}

function createCaptures(storage: SimulatedStorage): Captures {
  return new Captures(storage as never, {
    tunnelId: () => crypto.randomUUID(),
    alarm: { scheduleBy: () => undefined } as never,
    feed: { isWatched: false } as never,
    shard: () => 0,
    isRetired: false,
  });
}

function visit(captures: Captures): void {
  const request = { parts: ["GET", "/"], chars: 4, hasBody: false, isWebSocket: false };
  const recording = captures.startRecording({ ...request, clientIp: "", replayOf: null })!;
  recording.startResponse(200, [], 0);
  recording.complete();
}

/** Visits each of many tunnels twice a second. @returns how many writes each of them made. */
async function visitForAMinute(): Promise<number[]> {
  const storages = Array.from({ length: TUNNELS }, () => new SimulatedStorage());
  const tunnels = storages.map(createCaptures);
  const end = Date.now() + MINUTE_MS;
  while (Date.now() < end) {
    for (const captures of tunnels) visit(captures);
    await vi.advanceTimersByTimeAsync(SECOND_MS / 2);
  }
  return storages.map(({ writes }) => writes);
}

async function measureWrites(pace: DiskPace): Promise<void> {
  for (let count = 0; count < WRITES; count += 1) {
    const measured = pace.measure(() => {
      pendingWrites += 1;
      return true;
    });
    if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(SECOND_MS);
    await measured;
  }
}

/** Takes turns until the next one comes after this time. */
function takeTurns(waitMs: number): void {
  for (let count = 0; count < 1_000; count += 1) {
    if (diskPace.takeTurn(MINUTE_MS) >= waitMs) return;
  }
  throw new Error("the disk is not slow");
}

test("on a fast disk each tunnel writes its captures once a second", async () => {
  for (const writes of await visitForAMinute())
    expect(writes).toBeGreaterThan(MINUTE_MS / SECOND_MS / 2);
});

test("on a slow disk the captures of many tunnels hold up visitors for about a tenth of the time, and each is written", async () => {
  writeMs = 50;
  await visitForAMinute();
  heldUpMs = 0;
  const startMs = Date.now();
  const writes = await visitForAMinute();
  expect(heldUpMs / (Date.now() - startMs)).toBeLessThan(0.15);
  for (const count of writes) expect(count).toBeGreaterThan(4);
});

test("many captures do not wait for a slow disk", async () => {
  writeMs = 50;
  await measureWrites(diskPace);
  takeTurns(MINUTE_MS);
  const storage = new SimulatedStorage();
  const captures = createCaptures(storage);
  await vi.advanceTimersByTimeAsync(SECOND_MS);
  for (let count = 0; count < 20_000; count += 1) visit(captures);
  await vi.advanceTimersByTimeAsync(2 * SECOND_MS);
  expect(storage.writes).toBeGreaterThan(0);
});

test("on a slow disk the counters are saved less often", async () => {
  writeMs = 50;
  await measureWrites(diskPace);
  takeTurns(20 * SECOND_MS);
  const scheduleBy = vi.fn();
  const storage = new SimulatedStorage();
  const reporter = new MetricsReporter(
    Object.assign(storage, { sync: () => Promise.resolve() }) as never,
    { scheduleBy } as never,
    { reportTunnel: () => Promise.resolve() },
    { currentState: vi.fn(), servingToken: () => undefined, endsAtMs: () => undefined },
  );
  reporter.setTunnelId("tunnel");
  // After these, a report waits for a minute.
  for (let sent = 0; sent < REPORT_BURST; sent += 1) await reporter.send();
  reporter.usage.countAdmittedRequest();
  expect(scheduleBy.mock.lastCall![0]).toBe(Date.now() + 9 * SECOND_MS);
});

test("a turn comes after the longest wait at the latest, and a disk that is fast again delays no more", async () => {
  writeMs = 5_000;
  const pace = new DiskPace();
  await measureWrites(pace);
  const turns = Array.from({ length: 10 }, () => pace.takeTurn(MINUTE_MS));
  expect(turns[0]).toBe(0);
  expect(turns.at(-1)).toBe(MINUTE_MS);
  writeMs = 0;
  await measureWrites(pace);
  expect([pace.takeTurn(MINUTE_MS), pace.takeTurn(MINUTE_MS)]).toEqual([0, 0]);
});
