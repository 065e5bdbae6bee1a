/** A receiver's object: what it keeps, awake and asleep, and what it hands out. */
import {
  env,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from "cloudflare:test";
import { expect, test } from "vitest";
import type { Bucket } from "../../shared/bucket.ts";
import {
  type IncomingDelivery,
  type Receiver,
  DELIVERY_BURST,
  RECEIVER_STORED_MAX_BYTES,
} from "../../durable-objects/receiver.ts";
import type { ReceiverSettings } from "../../durable-objects/receiver/settings.ts";
import { DELIVERIES_PAGE_MAX_BYTES } from "../../durable-objects/receiver/deliveries.ts";
import { LONG_POLLS_MAX } from "../../durable-objects/receiver/long-polls.ts";
import { rows } from "../harness/workerd/objects.ts";

const DAY_MS = 24 * 3600_000;
const SETTINGS: ReceiverSettings = {
  version: 1,
  validator: "code_host",
  secrets: [{ sealed: "sealed", untilMs: null }],
  keepMs: 7 * DAY_MS,
};

interface Bindings {
  RECEIVER: DurableObjectNamespace<Receiver>;
}

async function newReceiver(settings = SETTINGS) {
  const stub = (env as unknown as Bindings).RECEIVER.getByName(crypto.randomUUID());
  await stub.publishSettings(settings);
  return stub;
}

const arrival = (id: string | null, body = new Uint8Array([0, 255, 10, 13])): IncomingDelivery => ({
  id,
  headers: { "x-vendor": "1", "content-type": "application/json" },
  contentType: "application/json",
  body,
});

const read = (stub: DurableObjectStub<Receiver>, question = {}) =>
  stub.listDeliveries({ after: 0, limit: 1_000, sinceMs: 0, waitMs: 0, ...question });
const idsOf = async (stub: DurableObjectStub<Receiver>, question = {}) =>
  (await read(stub, question)).map(({ id }) => id);

test("what it took is there byte for byte, in order, also after it slept", async () => {
  const stub = await newReceiver();
  for (const id of ["c", "a", "b"]) {
    expect(await stub.store(arrival(id), 1)).toEqual({ outcome: "kept" });
  }
  await evictDurableObject(stub);
  const kept = await read(stub);
  expect(kept.map(({ id }) => id)).toEqual(["c", "a", "b"]);
  expect([...kept[0]!.body]).toEqual([0, 255, 10, 13]);
  expect(kept[0]!.headers).toEqual({ "x-vendor": "1", "content-type": "application/json" });
  expect(kept.map(({ position }) => position)).toEqual([1, 2, 3]);
  expect(await idsOf(stub, { after: 1, limit: 1 })).toEqual(["a"]);
});

test("a delivery that comes twenty times at once is kept once, and once more after it slept", async () => {
  const stub = await newReceiver();
  const taken = await Promise.all(Array.from({ length: 20 }, () => stub.store(arrival("same"), 1)));
  expect(taken.filter(({ outcome }) => outcome === "kept")).toHaveLength(1);
  expect(taken.filter(({ outcome }) => outcome === "repeated")).toHaveLength(19);
  await evictDurableObject(stub);
  expect(await stub.store(arrival("same"), 1)).toEqual({ outcome: "repeated" });
  expect(await idsOf(stub)).toEqual(["same"]);
});

test("deliveries without a name are kept each", async () => {
  const stub = await newReceiver();
  await stub.store(arrival(null), 1);
  await stub.store(arrival(null), 1);
  const ids = await idsOf(stub);
  expect(new Set(ids).size).toBe(2);
});

test("what was judged by older settings is sent back with the newest", async () => {
  const stub = await newReceiver();
  const newest = { ...SETTINGS, version: 3 };
  await stub.publishSettings(newest);
  await stub.publishSettings({ ...SETTINGS, version: 2 });
  expect(await stub.store(arrival("a"), 1)).toEqual({ outcome: "outdated", settings: newest });
  expect(await stub.getSettings()).toEqual(newest);
  expect(await idsOf(stub)).toEqual([]);
});

test("rows are asked once for a receiver, and again for a name that nobody has", async () => {
  const receivers = (env as unknown as Bindings).RECEIVER;
  const [id, nobody] = [crypto.randomUUID(), crypto.randomUUID()];
  rows.receivers.set(id, SETTINGS);
  for (const name of [id, id, nobody]) await receivers.getByName(name).getSettings();
  expect(rows.asked.filter((asked) => asked === id)).toHaveLength(1);
  expect(await receivers.getByName(nobody).getSettings()).toBeNull();
  await runInDurableObject(receivers.getByName(nobody), async (_, { storage }) => {
    expect([...(await storage.list()).keys()]).toEqual([]);
  });
});

test("a reader who waits hears of the next delivery, and of none when the time is over", async () => {
  const stub = await newReceiver();
  const waiting = read(stub, { waitMs: 60_000 });
  await stub.store(arrival("a"), 1);
  expect((await waiting).map(({ id }) => id)).toEqual(["a"]);
  expect(await idsOf(stub, { after: 1, waitMs: 20 })).toEqual([]);
});

test("one reader too many ends the longest wait, and waits itself; so does each that comes after it", async () => {
  const stub = await newReceiver();
  const wait = () => read(stub, { waitMs: 60_000 });
  const readers = Array.from({ length: LONG_POLLS_MAX + 2 }, wait);
  expect(await Promise.all(readers.slice(0, 2))).toEqual([[], []]);
  await stub.store(arrival("a"), 1);
  for (const page of await Promise.all(readers.slice(2))) {
    expect(page.map(({ id }) => id)).toEqual(["a"]);
  }
});

test("an answer holds no more than it may, and what is larger comes alone", async () => {
  const stub = await newReceiver();
  const large = new Uint8Array(1024 * 1024);
  for (let n = 0; n < 6; n++) await stub.store(arrival(`large-${n}`, large), 1);
  const first = await read(stub);
  expect(first.length).toBe(Math.floor(DELIVERIES_PAGE_MAX_BYTES / (large.length + 100)));
  const rest = await read(stub, { after: first.at(-1)!.position });
  expect([...first, ...rest].map(({ id }) => id)).toEqual(
    Array.from({ length: 6 }, (_, n) => `large-${n}`),
  );
});

test("an acknowledgement only ever moves on, and never beyond what came", async () => {
  const stub = await newReceiver();
  for (const id of ["a", "b", "c"]) await stub.store(arrival(id), 1);
  expect(await stub.acknowledge(2)).toBe(2);
  expect(await stub.acknowledge(1)).toBe(2);
  expect(await stub.acknowledge(1_000)).toBe(3);
  await evictDurableObject(stub);
  expect(await stub.getStats()).toMatchObject({ kept: 3, acknowledged: 3 });
});

/** As if everything in it had come that much earlier. */
const age = (stub: DurableObjectStub<Receiver>, ms: number, which = "true") =>
  runInDurableObject(stub, (_, { storage }) => {
    storage.sql.exec(
      `update deliveries set received_at_ms = received_at_ms - ? where ${which}`,
      ms,
    );
  });

test("what is older than it is kept goes with the alarm, and nothing else does", async () => {
  const stub = await newReceiver();
  for (const id of ["old", "new"]) await stub.store(arrival(id), 1);
  await age(stub, SETTINGS.keepMs + 1, "id = 'old'");
  expect(await runDurableObjectAlarm(stub)).toBe(true);
  expect(await idsOf(stub)).toEqual(["new"]);
  const place = (await read(stub))[0]!.position;
  expect(place).toBe(2);
  await age(stub, SETTINGS.keepMs + 1);
  expect(await runDurableObjectAlarm(stub)).toBe(true);
  expect(await idsOf(stub)).toEqual([]);
  // A place is never used again: a reader's cursor would miss what has it.
  await stub.store(arrival("next"), 1);
  expect((await read(stub))[0]!.position).toBe(3);
});

test("a plan that keeps less has the alarm called earlier", async () => {
  const stub = await newReceiver();
  await stub.store(arrival("a"), 1);
  const alarmOf = () => runInDurableObject(stub, (_, { storage }) => storage.getAlarm());
  const before = await alarmOf();
  await stub.publishSettings({ ...SETTINGS, version: 2, keepMs: DAY_MS });
  expect(before! - (await alarmOf())!).toBe(6 * DAY_MS);
});

/** As if it held that much more. */
const fill = (stub: DurableObjectStub<Receiver>, bytes: number) =>
  runInDurableObject(stub, (_, { storage }) => {
    storage.sql.exec("update kept set bytes = bytes + ?", bytes);
  });

test("what was acknowledged makes room for what comes, the oldest first; what was not never does", async () => {
  const stub = await newReceiver();
  const body = new Uint8Array(1024 * 1024);
  for (const id of ["a", "b", "c"]) await stub.store(arrival(id, body), 1);
  await fill(stub, RECEIVER_STORED_MAX_BYTES - 3 * body.length - 1024);
  expect(await stub.store(arrival("d", body), 1)).toEqual({ outcome: "full" });
  await stub.acknowledge(2);
  expect(await stub.store(arrival("d", body), 1)).toEqual({ outcome: "kept" });
  expect(await idsOf(stub)).toEqual(["b", "c", "d"]);
});

test("a receiver that gets too many makes its vendors wait, also after it slept", async () => {
  const stub = await newReceiver();
  expect(await stub.store(arrival("a"), 1)).toEqual({ outcome: "kept" });
  await runInDurableObject(stub, (_, { storage }) => {
    const { tokens, atMs } = storage.kv.get<Bucket>("bucket")!;
    expect(tokens).toBe(DELIVERY_BURST - 1);
    storage.kv.put("bucket", { tokens: tokens - 2 * DELIVERY_BURST, atMs });
  });
  const limited = { outcome: "rate_limited", waitMs: expect.any(Number) };
  expect(await stub.store(arrival("b"), 1)).toEqual(limited);
  await evictDurableObject(stub);
  expect(await stub.store(arrival("b"), 1)).toEqual(limited);
  expect(await idsOf(stub)).toEqual(["a"]);
});

test("one that has ended keeps nothing, takes nothing, and no late news brings it back", async () => {
  const stub = await newReceiver();
  await stub.store(arrival("a"), 1);
  const waiting = read(stub, { after: 1, waitMs: 60_000 });
  await stub.retire();
  expect(await waiting).toEqual([]);
  await stub.publishSettings({ ...SETTINGS, version: 9 });
  await evictDurableObject(stub);
  expect(await stub.getSettings()).toBeNull();
  expect(await stub.store(arrival("b"), 1)).toEqual({ outcome: "gone" });
  expect(await idsOf(stub)).toEqual([]);
});
