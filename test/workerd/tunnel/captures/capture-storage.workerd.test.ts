/** The keys that a tunnel's captures are stored under: each is a row, which the platform charges for. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../shared/time.ts";
import {
  completeVisit,
  decodeBase64Text,
  lastCapture,
  listCaptures,
  setCaptureSettings,
  getCapture,
} from "../../../harness/workerd/live-captures.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { CAPTURE_PAGE_MAX_EXCHANGES } from "../../../../durable-objects/tunnel/captures/capture-store.ts";
import { LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";

const PREFIX = "capture:";
const RETENTION_DAYS = 1;
/** Just below the size from which a body has a key of its own. */
const SMALL_BODY_BYTES = 16 * 1024;

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function createServed() {
  const tunnel = new LiveTunnel();
  const agent = await tunnel.agent();
  await setCaptureSettings(tunnel, { retentionDays: RETENTION_DAYS });
  return { tunnel, agent };
}

/** The kinds of the stored keys, such as `page` and `body`. */
async function listStoredKinds(tunnel: LiveTunnel): Promise<string[]> {
  return runInDurableObject(tunnel.stub, (_, { storage }) =>
    Array.from(storage.kv.list({ prefix: PREFIX }), ([key]) => key.split(":")[1]!),
  );
}

async function expire(tunnel: LiveTunnel): Promise<void> {
  vi.useFakeTimers({
    toFake: ["Date"],
    now: Date.now() + RETENTION_DAYS * DAY_MS + 1_000,
  });
  await runDurableObjectAlarm(tunnel.stub);
}

test("a small request and its response are one row, which holds everything and is dropped when it expires", async () => {
  const { tunnel, agent } = await createServed();
  await completeVisit(tunnel, agent, "/small?x=1", "small");
  const capture = await lastCapture(tunnel);
  await tunnel.sleep();
  expect(await listStoredKinds(tunnel)).toEqual(["page"]);
  const stored = await lastCapture(tunnel);
  expect(stored).toEqual(capture);
  expect(decodeBase64Text(stored.response_body)).toBe("small");
  await expire(tunnel);
  expect(await listStoredKinds(tunnel)).toEqual([]);
});

test("the details of many requests are stored apart from their records, found there, and dropped with them", async () => {
  const { tunnel, agent } = await createServed();
  const body = "x".repeat(SMALL_BODY_BYTES);
  for (let i = 0; i < 8; i++) await completeVisit(tunnel, agent, `/${i}`, body);
  const listed = await listCaptures(tunnel);
  await tunnel.sleep();
  expect(new Set(await listStoredKinds(tunnel))).toEqual(new Set(["page", "details"]));
  expect(await listCaptures(tunnel)).toEqual(listed);
  for (const { id } of listed) {
    const stored = await getCapture(tunnel.stub, id);
    expect(decodeBase64Text(stored!.response_body)).toBe(body);
  }
  await expire(tunnel);
  expect(await listStoredKinds(tunnel)).toEqual([]);
});

test("pages of earlier versions, all of which have their details under a key of their own, are read and dropped", async () => {
  const { tunnel, agent } = await createServed();
  await completeVisit(tunnel, agent, "/earlier", "earlier");
  const capture = await lastCapture(tunnel);
  await tunnel.sleep();
  await runInDurableObject(tunnel.stub, (_, { storage: { kv } }) => {
    const [[key, stored]] = [...kv.list({ prefix: `${PREFIX}page:` })] as [
      [string, { details?: unknown }],
    ];
    const { details, ...page } = stored;
    kv.put(key, page);
    kv.put(key.replace("page:", "details:"), details);
  });
  expect(await lastCapture(tunnel)).toEqual(capture);
  expect((await listStoredKinds(tunnel)).toSorted()).toEqual(["details", "page"]);
  await expire(tunnel);
  expect(await listStoredKinds(tunnel)).toEqual([]);
});

describe("captures are written", () => {
  /** Stops the clock and the waits of the object. The returned function ends those that are in progress. */
  function stopTime(): () => void {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    let waits = Promise.withResolvers<void>();
    vi.spyOn(scheduler, "wait").mockImplementation(() => waits.promise);
    return () => {
      waits.resolve();
      waits = Promise.withResolvers<void>();
    };
  }

  /** After a first request was written. */
  async function createWithCapture() {
    const { tunnel, agent } = await createServed();
    const endWaits = stopTime();
    await completeVisit(tunnel, agent, "/first");
    endWaits();
    const countPages = async () => (await listStoredKinds(tunnel)).length;
    await vi.waitUntil(async () => (await countPages()) === 1, WAIT_OPTIONS);
    return { tunnel, agent, endWaits, countPages };
  }

  test("soon after a single request, and those that follow within a second together", async () => {
    const { tunnel, agent, endWaits, countPages } = await createWithCapture();
    for (const path of ["/second", "/third"]) {
      await completeVisit(tunnel, agent, path);
      endWaits();
      expect(await countPages()).toBe(1);
    }
    vi.setSystemTime(Date.now() + 1_000);
    endWaits();
    await vi.waitUntil(async () => (await countPages()) === 2, WAIT_OPTIONS);
  });

  test("earlier when there are enough for a page", async () => {
    const { tunnel, agent, endWaits, countPages } = await createWithCapture();
    for (let i = 0; i < CAPTURE_PAGE_MAX_EXCHANGES; i++)
      await completeVisit(tunnel, agent, `/${i}`);
    endWaits();
    await vi.waitUntil(async () => (await countPages()) > 1, WAIT_OPTIONS);
  });

  test("after a second also when the clock was set back", async () => {
    const { tunnel, agent, endWaits, countPages } = await createWithCapture();
    vi.setSystemTime(Date.now() - HOUR_MS);
    await completeVisit(tunnel, agent, "/after");
    await vi.waitUntil(async () => {
      endWaits();
      return (await countPages()) === 2;
    }, WAIT_OPTIONS);
  });
});
