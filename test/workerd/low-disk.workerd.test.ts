/** Objects of a server whose disk is almost full. */
import { env, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LOW_DISK_MIN_BYTES, reportLowDisk, StorageLimit } from "../../durable-objects/low-disk.ts";
import type { Receiver } from "../../durable-objects/receiver.ts";
import { Alarm } from "../../durable-objects/tunnel/alarm.ts";
import { Captures } from "../../durable-objects/tunnel/captures/captures.ts";
import { CaptureFeed } from "../../durable-objects/tunnel/captures/feed.ts";
import { setCaptureSettings } from "../harness/workerd/live-captures.ts";
import { LiveTunnel } from "../harness/workerd/live-tunnel.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";

const HOUR_MS = 3_600_000;
const KIBIBYTE = 1024;
const HEADERS = ["x-fill", "h".repeat(10 * KIBIBYTE)];
/** More than one page of captures, in which the oldest are dropped. */
const TOLERANCE_BYTES = 100 * KIBIBYTE;

/** In the past, so that the other tests of this isolate have a disk with enough space. */
let startsAtMs = Date.now() - 10 * HOUR_MS;
beforeEach(() => {
  startsAtMs += HOUR_MS;
  vi.useFakeTimers({ toFake: ["Date"], now: startsAtMs });
});
afterEach(() => {
  vi.useRealTimers();
});

test("a report holds for some seconds", () => {
  const limit = new StorageLimit(1_000_000);
  const now = Date.now();
  expect(limit.getBytes(500_000, now)).toBe(1_000_000);
  reportLowDisk(now, "low");
  expect(limit.getBytes(500_000, now + 5_000)).toBe(500_000);
  expect(limit.getBytes(600_000, now + 6_000)).toBe(500_000);
  expect(limit.getBytes(600_000, now + 10_000)).toBe(1_000_000);
  expect(new StorageLimit(1_000_000).getBytes(0, now)).toBe(LOW_DISK_MIN_BYTES);
});

test("a tunnel keeps its newest captures, and stores no more than before", async () => {
  const tunnel = new LiveTunnel();
  await runInDurableObject(tunnel.stub, async (_, { storage }) => {
    const captures = createCaptures(tunnel.id, storage);
    record(captures, 100);
    const before = storage.sql.databaseSize;
    reportLowDisk(Date.now(), "low");
    const added = record(captures, 200);
    await vi.waitUntil(() => storage.sql.databaseSize < before + TOLERANCE_BYTES, WAIT_OPTIONS);
    const listed = await captures.list({ limit: 500 });
    expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining(added.slice(-50)));
    expect(listed.length).toBeLessThan(150);
  });
});

test("a new tunnel has some captures", async () => {
  const tunnel = new LiveTunnel();
  await runInDurableObject(tunnel.stub, async (_, { storage }) => {
    reportLowDisk(Date.now(), "low");
    const captures = createCaptures(tunnel.id, storage);
    const added = record(captures, 100);
    const maxBytes = LOW_DISK_MIN_BYTES + TOLERANCE_BYTES;
    await vi.waitUntil(() => storage.sql.databaseSize < maxBytes, WAIT_OPTIONS);
    const listed = await captures.list({ limit: 500 });
    expect(listed.length).toBeGreaterThan(5);
    expect(listed[0]!.id).toBe(added.at(-1));
  });
});

test("a receiver stores a delivery only in place of acknowledged ones", async () => {
  const receivers = (env as unknown as { RECEIVER: DurableObjectNamespace<Receiver> }).RECEIVER;
  const stub = receivers.getByName(crypto.randomUUID());
  await stub.publishSettings({
    version: 1,
    validator: "code_host",
    secrets: [{ sealed: "sealed", untilMs: null }],
    keepMs: 24 * HOUR_MS,
  });
  const body = new Uint8Array(LOW_DISK_MIN_BYTES);
  const store = (id: string) =>
    stub.store({ id, headers: {}, contentType: null, body }, 1).then(({ outcome }) => outcome);
  expect(await store("a")).toBe("stored");
  expect(await store("b")).toBe("stored");
  reportLowDisk(Date.now(), "low");
  expect(await store("c")).toBe("low_disk");
  await stub.acknowledge(1);
  expect(await store("c")).toBe("stored");
  expect(await store("d")).toBe("low_disk");
  reportLowDisk(Date.now(), "critical");
  await stub.acknowledge(10);
  expect(await store("d")).toBe("low_disk");
  vi.setSystemTime(Date.now() + 10_000);
  expect(await store("d")).toBe("stored");
});

test("when half of the reserve is used up, a tunnel writes nothing, and keeps what it has", async () => {
  const tunnel = new LiveTunnel();
  await runInDurableObject(tunnel.stub, async (_, { storage }) => {
    const captures = createCaptures(tunnel.id, storage);
    const before = record(captures, 20);
    const put = vi.spyOn(storage, "put");
    reportLowDisk(Date.now(), "critical");
    record(captures, 100);
    expect(put).not.toHaveBeenCalled();
    expect(captures.memory.heldBytes).toBe(0);
    expect((await captures.list({ limit: 500 })).map(({ id }) => id)).toEqual(before.toReversed());
    // There is more space again.
    reportLowDisk(Date.now(), "low");
    const [after] = record(captures, 1);
    expect(put).toHaveBeenCalled();
    expect((await captures.list({ limit: 1 }))[0]!.id).toBe(after);
  });
});

test("when half of the reserve is used up, nothing is replayed, because the result could not be stored", async () => {
  const tunnel = new LiveTunnel();
  await setCaptureSettings(tunnel, { allowReplay: true });
  const id = crypto.randomUUID();
  reportLowDisk(Date.now(), "low");
  expect(await tunnel.stub.replay(id)).toEqual({ refused: "not_found" });
  reportLowDisk(Date.now(), "critical");
  expect(await tunnel.stub.replay(id)).toEqual({ refused: "low_disk" });
});

function createCaptures(tunnelId: string, storage: DurableObjectStorage): Captures {
  const owner = { hasAgent: false, findOwner: () => Promise.resolve(undefined) };
  return new Captures(storage, {
    tunnelId: () => tunnelId,
    alarm: new Alarm(storage),
    feed: new CaptureFeed(storage.kv, owner),
    shard: () => 0,
    isRetired: false,
  });
}

/** Writes exchanges with large headers. @returns their ids, oldest first. */
function record(captures: Captures, count: number): string[] {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const parts = ["GET", "/", ...HEADERS];
    const recording = captures.startRecording({
      parts,
      chars: parts.join("").length,
      hasBody: false,
      isWebSocket: false,
      clientIp: "",
      replayOf: null,
    })!;
    recording.startResponse(200, [], 0);
    recording.complete();
    ids.push(recording.id);
    vi.setSystemTime(Date.now() + 1);
    if (n % 10 === 9) captures.flush();
  }
  captures.flush();
  return ids;
}
