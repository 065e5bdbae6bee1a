/** How much the captures of a busy tunnel write to the disk. */
import { runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Alarm } from "../../../../durable-objects/tunnel/alarm.ts";
import { Captures } from "../../../../durable-objects/tunnel/captures/captures.ts";
import { CaptureFeed } from "../../../../durable-objects/tunnel/captures/feed.ts";
import {
  CaptureMemory,
  WRITTEN_BYTES,
} from "../../../../durable-objects/tunnel/captures/memory.ts";
import type { Recording } from "../../../../durable-objects/tunnel/captures/recording.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";

const MEBIBYTE = 1024 * 1024;
const SECONDS = 30;
const HEADERS = ["x-fill", "h".repeat(10_000)];
const MESSAGE = new Uint8Array(1_024);
const EVENT = new TextEncoder().encode(`data: ${"e".repeat(1_000)}\n\n`);
const NOTHING = new Uint8Array();

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

interface Stage {
  captures: Captures;
  /** Written to the storage since the start. */
  writtenBytes: () => number;
  /** Writes what is due, as the object does each second. */
  endSecond: () => Promise<void>;
}

/** Runs in the object of a tunnel, whose clock stands still. */
function runOnStage(run: (stage: Stage) => Promise<void>): Promise<void> {
  const tunnel = new LiveTunnel();
  return runInDurableObject(tunnel.stub, async (_, { storage }) => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    let bytes = 0;
    const put = storage.put.bind(storage) as (values: object) => Promise<void>;
    vi.spyOn(storage, "put").mockImplementation(async (values: unknown) => {
      bytes += countBytes(values);
      await put(values as object);
    });
    let waits = Promise.withResolvers<void>();
    vi.spyOn(scheduler, "wait").mockImplementation((ms) =>
      ms === 0 ? Promise.resolve() : waits.promise,
    );
    const owner = { hasAgent: false, findOwner: () => Promise.resolve(undefined) };
    const captures = new Captures(storage, {
      tunnelId: () => tunnel.id,
      alarm: new Alarm(storage),
      feed: new CaptureFeed(storage.kv, owner),
      shard: () => 0,
      isRetired: false,
    });
    const endSecond = async () => {
      vi.setSystemTime(Date.now() + 1_000);
      waits.resolve();
      waits = Promise.withResolvers();
      await storage.sync();
    };
    await run({ captures, writtenBytes: () => bytes, endSecond });
  });
}

/** About how many bytes a stored value takes. */
function countBytes(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (value instanceof Uint8Array) return value.byteLength;
  if (typeof value !== "object" || value === null) return 2;
  return Object.entries(value).reduce((sum, [key, part]) => sum + key.length + countBytes(part), 0);
}

function start(captures: Captures, isWebSocket: boolean, target = "/"): Recording {
  const parts = ["GET", target, ...HEADERS];
  const chars = parts.join("").length;
  const request = { parts, chars, hasBody: false, clientIp: "", replayOf: null, isWebSocket };
  return captures.startRecording(request)!;
}

function exchange(captures: Captures, target?: string): Recording {
  const recording = start(captures, false, target);
  recording.startResponse(200, HEADERS, HEADERS.join("").length);
  recording.addResponseBytes(MESSAGE);
  recording.complete();
  return recording;
}

function openSocket(captures: Captures): Recording {
  const recording = start(captures, true);
  recording.startResponse(101, [], 0);
  return recording;
}

function openEventStream(captures: Captures): Recording {
  const recording = start(captures, false);
  recording.startResponse(200, ["content-type", "text/event-stream"], 29);
  return recording;
}

/** Each makes a second's traffic, of at least 6 MiB. */
const TRAFFIC: [string, (captures: Captures) => () => void][] = [
  [
    "headers",
    (captures) => () => {
      for (let n = 0; n < 400; n += 1) exchange(captures);
    },
  ],
  [
    "messages of a WebSocket",
    (captures) => {
      const socket = openSocket(captures);
      return () => {
        for (let n = 0; n < 8_000; n += 1) socket.addMessage("client", "binary", MESSAGE);
      };
    },
  ],
  [
    "events",
    (captures) => {
      const stream = openEventStream(captures);
      return () => {
        for (let n = 0; n < 8_000; n += 1) stream.addResponseBytes(EVENT);
      };
    },
  ],
  [
    "a message a second of each of many WebSockets",
    (captures) => {
      const sockets = Array.from({ length: 600 }, () => openSocket(captures));
      return () => {
        for (const socket of sockets) socket.addMessage("server", "text", NOTHING);
      };
    },
  ],
];

describe("a tunnel writes a bounded amount of captures", () => {
  test.each(TRAFFIC)("with %s", (_, createTraffic) =>
    runOnStage(async ({ captures, writtenBytes, endSecond }) => {
      const makeTraffic = createTraffic(captures);
      for (let second = 0; second < SECONDS; second += 1) {
        makeTraffic();
        await endSecond();
      }
      const bound = WRITTEN_BYTES.burst + (SECONDS * 1_000) / WRITTEN_BYTES.refillMs;
      expect(writtenBytes() / bound).toBeGreaterThan(0.5);
      expect(writtenBytes() / bound).toBeLessThan(1.1);
    }),
  );

  test("also when it leaves the memory in between", async () => {
    const tunnel = new LiveTunnel();
    const count = (bytes: number) =>
      runInDurableObject(tunnel.stub, (_, { storage }) => {
        const memory = new CaptureMemory(MEBIBYTE, Date.now, storage);
        memory.countWritten(bytes);
        return memory.admits("head");
      });
    expect(await count(WRITTEN_BYTES.burst - MEBIBYTE)).toBe(true);
    expect(await count(10 * MEBIBYTE)).toBe(false);
    await tunnel.sleep();
    expect(await count(0)).toBe(false);
  });

  test("and says of each capture what is not stored, until enough time has passed", () =>
    runOnStage(async ({ captures, endSecond }) => {
      const socket = openSocket(captures);
      socket.addMessage("client", "binary", MESSAGE);
      await endSecond();
      captures.memory.countWritten(WRITTEN_BYTES.burst + 10 * MEBIBYTE);
      const target = `/${"p".repeat(1_000)}`;
      const cut = exchange(captures, target);
      socket.addMessage("client", "binary", MESSAGE);
      await endSecond();
      const [stored, messages] = await captures.findDetails([cut.id, socket.id]);
      expect(stored).toMatchObject({
        status: 200,
        path: target.slice(0, 256),
        request_headers: {},
        response_headers: {},
        response_body: "",
        response_size: MESSAGE.byteLength,
        truncated: { request: false, response: true, request_head: true, response_head: true },
      });
      expect([messages!.frames.length, messages!.frames_total]).toEqual([1, 2]);
      vi.setSystemTime(Date.now() + 60_000);
      const whole = exchange(captures, target);
      socket.addMessage("client", "binary", MESSAGE);
      await endSecond();
      const [next, more] = await captures.findDetails([whole.id, socket.id]);
      expect(next!.path).toBe(target);
      expect(Object.values(next!.truncated)).not.toContain(true);
      expect([more!.frames.length, more!.frames_total]).toEqual([2, 3]);
    }));
});
