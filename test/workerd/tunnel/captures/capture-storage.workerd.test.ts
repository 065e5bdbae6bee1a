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
import { SLICE_INTERVAL_MS } from "../../../../durable-objects/tunnel/captures/reading/read-pace.ts";
import { diskPace } from "../../../../durable-objects/disk-pace.ts";
import { FINALIZED_WRITE_BYTES } from "../../../../durable-objects/tunnel/captures/unwritten-captures.ts";
import { LISTED_PATH_MAX_CHARS } from "../../../../protocol/limits.ts";
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

test("a list of a tunnel without captures does not search its storage again and again", async () => {
  const { tunnel, agent } = await createServed();
  expect(await listCaptures(tunnel)).toEqual([]);
  const searches = await runInDurableObject(tunnel.stub, async (object, { storage }) => {
    const search = vi.spyOn(storage.kv, "list");
    for (let i = 0; i < 3; i++) await object.listCaptures({ limit: 10 });
    return search.mock.calls.length;
  });
  expect(searches).toBe(0);
  await completeVisit(tunnel, agent, "/first", "");
  expect(await listCaptures(tunnel)).toHaveLength(1);
});

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

test("captures are read together, as many as fit into one answer", async () => {
  const { tunnel, agent } = await createServed();
  for (let i = 0; i < 5; i++) await completeVisit(tunnel, agent, `/${i}`, "x".repeat(300_000));
  let ids = (await listCaptures(tunnel)).map(({ id }) => id);
  await tunnel.sleep();
  const answers: string[][] = [];
  while (ids.length > 0) {
    const captures = [...(await tunnel.stub.getCaptures(ids))];
    answers.push(captures.map((capture) => capture!.path));
    ids = ids.slice(captures.length);
  }
  expect(answers).toEqual([["/4", "/3"], ["/2", "/1"], ["/0"]]);
});

describe("of requests with long paths", () => {
  const LONG_PATH = `/${"p".repeat(64 * 1024)}`;
  /** Two megabytes. */
  const REQUESTS = 32;

  async function createLong() {
    const { tunnel, agent } = await createServed();
    for (let i = 0; i < REQUESTS; i++) await completeVisit(tunnel, agent, LONG_PATH + i);
    return tunnel;
  }

  test("each read is divided into slices, between which visitors are served", async () => {
    const tunnel = await createLong();
    await tunnel.sleep();
    const wait = vi.spyOn(scheduler, "wait");
    const countRests = async (read: Promise<unknown>) => {
      wait.mockClear();
      await read;
      return wait.mock.calls.filter(([ms]) => ms <= SLICE_INTERVAL_MS).length;
    };
    const { stub } = tunnel;
    const policy = { actions: [{ kind: "jwt_validation" as const }] };
    expect(await countRests(listCaptures(tunnel, { path: "/other" }))).toBeGreaterThan(2);
    expect(await countRests(stub.breakDownCaptures(0, 1_000))).toBeGreaterThan(2);
    expect(await countRests(stub.dryRunPolicy({ policy, limit: 1_000 }))).toBeGreaterThan(2);
  });

  test("lists have the beginnings, a filter searches all of a path, and a capture has all of it", async () => {
    const tunnel = await createLong();
    const beginning = LONG_PATH.slice(0, LISTED_PATH_MAX_CHARS);
    const listed = await listCaptures(tunnel, { path: `p${REQUESTS - 1}` });
    expect(listed).toMatchObject([{ path: beginning }]);
    expect((await lastCapture(tunnel)).path).toBe(LONG_PATH + (REQUESTS - 1));
    const { paths } = await tunnel.stub.breakDownCaptures(0, 1_000);
    expect(paths).toMatchObject([{ path: beginning, requests: REQUESTS }]);
  });
});

describe("captures are written", () => {
  /** Stops the clock and the waits of the object. The returned function ends those that are in progress. */
  function stopTime(): () => void {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    // The disk of a busy machine may be slow.
    vi.spyOn(diskPace, "takeTurn").mockReturnValue(0);
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

  test("earlier when they have many bytes", async () => {
    const { tunnel, agent, endWaits, countPages } = await createWithCapture();
    const path = `/${"p".repeat(FINALIZED_WRITE_BYTES / 2)}`;
    for (const end of ["a", "b"]) await completeVisit(tunnel, agent, path + end);
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
