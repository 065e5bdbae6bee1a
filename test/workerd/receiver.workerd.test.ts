/** A receiver's object: which deliveries it stores and returns, also after hibernation. */
import {
  env,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from "cloudflare:test";
import { expect, test } from "vitest";
import type { TokenBucket } from "../../shared/bounds/token-bucket.ts";
import {
  type IncomingDelivery,
  type Receiver,
  DELIVERY_BURST,
  DELIVERY_UNIT_BYTES,
  RECEIVER_STORED_MAX_BYTES,
} from "../../durable-objects/receiver.ts";
import { RETIRED_STORAGE_MS } from "../../durable-objects/limits.ts";
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

async function createReceiver(settings = SETTINGS) {
  const stub = (env as unknown as Bindings).RECEIVER.getByName(crypto.randomUUID());
  await stub.publishSettings(settings);
  return stub;
}

const newDelivery = (
  id: string | null,
  body = new Uint8Array([0, 255, 10, 13]),
): IncomingDelivery => ({
  id,
  headers: { "x-vendor": "1", "content-type": "application/json" },
  contentType: "application/json",
  body,
});

const readPage = (stub: DurableObjectStub<Receiver>, query = {}) =>
  stub.listDeliveries({ after: 0, limit: 1_000, sinceMs: 0, waitMs: 0, ...query });
const read = async (stub: DurableObjectStub<Receiver>, query = {}) =>
  (await readPage(stub, query)).deliveries;
const readIds = async (stub: DurableObjectStub<Receiver>, query = {}) =>
  (await read(stub, query)).map(({ id }) => id);

test("deliveries are returned byte for byte and in order, also after hibernation", async () => {
  const stub = await createReceiver();
  for (const id of ["c", "a", "b"]) {
    expect(await stub.store(newDelivery(id), 1)).toEqual({ outcome: "stored" });
  }
  await evictDurableObject(stub);
  const stored = await read(stub);
  expect(stored.map(({ id }) => id)).toEqual(["c", "a", "b"]);
  expect([...stored[0]!.body]).toEqual([0, 255, 10, 13]);
  expect(stored[0]!.headers).toEqual({ "x-vendor": "1", "content-type": "application/json" });
  expect(stored.map(({ position }) => position)).toEqual([1, 2, 3]);
  expect(await readIds(stub, { after: 1, limit: 1 })).toEqual(["a"]);
});

test("twenty concurrent deliveries with one id are stored once, and a repeated one after hibernation not again", async () => {
  const stub = await createReceiver();
  const results = await Promise.all(
    Array.from({ length: 20 }, () => stub.store(newDelivery("same"), 1)),
  );
  expect(results.filter(({ outcome }) => outcome === "stored")).toHaveLength(1);
  expect(results.filter(({ outcome }) => outcome === "duplicate")).toHaveLength(19);
  await evictDurableObject(stub);
  expect(await stub.store(newDelivery("same"), 1)).toEqual({ outcome: "duplicate" });
  expect(await readIds(stub)).toEqual(["same"]);
});

test("deliveries without an id are all stored", async () => {
  const stub = await createReceiver();
  await stub.store(newDelivery(null), 1);
  await stub.store(newDelivery(null), 1);
  const ids = await readIds(stub);
  expect(new Set(ids).size).toBe(2);
});

test("a delivery verified with older settings is returned with the newest", async () => {
  const stub = await createReceiver();
  const newest = { ...SETTINGS, version: 3 };
  await stub.publishSettings(newest);
  await stub.publishSettings({ ...SETTINGS, version: 2 });
  expect(await stub.store(newDelivery("a"), 1)).toEqual({ outcome: "outdated", settings: newest });
  expect(await stub.getSettings()).toEqual(newest);
  expect(await readIds(stub)).toEqual([]);
});

test("the database is read once for a receiver, and each time for an unknown id", async () => {
  const receivers = (env as unknown as Bindings).RECEIVER;
  const [id, unknown] = [crypto.randomUUID(), crypto.randomUUID()];
  rows.receivers.set(id, SETTINGS);
  for (const name of [id, id, unknown]) await receivers.getByName(name).getSettings();
  expect(rows.reads.filter((readId) => readId === id)).toHaveLength(1);
  expect(await receivers.getByName(unknown).getSettings()).toBeNull();
  await runInDurableObject(receivers.getByName(unknown), async (_, { storage }) => {
    expect([...(await storage.list()).keys()]).toEqual([]);
  });
});

test("a waiting reader gets the next delivery, or none when its time has passed", async () => {
  const stub = await createReceiver();
  const waiting = read(stub, { waitMs: 60_000 });
  await stub.store(newDelivery("a"), 1);
  expect((await waiting).map(({ id }) => id)).toEqual(["a"]);
  expect(await readIds(stub, { after: 1, waitMs: 20 })).toEqual([]);
});

test("each reader beyond the limit ends the longest wait, and waits itself", async () => {
  const stub = await createReceiver();
  const wait = () => read(stub, { waitMs: 60_000 });
  const readers = Array.from({ length: LONG_POLLS_MAX + 2 }, wait);
  expect(await Promise.all(readers.slice(0, 2))).toEqual([[], []]);
  await stub.store(newDelivery("a"), 1);
  for (const page of await Promise.all(readers.slice(2))) {
    expect(page.map(({ id }) => id)).toEqual(["a"]);
  }
});

test("a page is bounded, and a larger delivery has a page of its own", async () => {
  const stub = await createReceiver();
  const large = new Uint8Array(1024 * 1024);
  for (let n = 0; n < 6; n++) await stub.store(newDelivery(`large-${n}`, large), 1);
  const first = await read(stub);
  expect(first.length).toBe(Math.floor(DELIVERIES_PAGE_MAX_BYTES / (large.length + 100)));
  const rest = await read(stub, { after: first.at(-1)!.position });
  expect([...first, ...rest].map(({ id }) => id)).toEqual(
    Array.from({ length: 6 }, (_, n) => `large-${n}`),
  );
});

test("the acknowledged position never decreases, and never exceeds the newest delivery", async () => {
  const stub = await createReceiver();
  for (const id of ["a", "b", "c"]) await stub.store(newDelivery(id), 1);
  expect(await stub.acknowledge(2)).toBe(2);
  expect(await stub.acknowledge(1)).toBe(2);
  expect(await stub.acknowledge(1_000)).toBe(3);
  await evictDurableObject(stub);
  expect(await stub.getStats()).toMatchObject({ stored: 3, acknowledged: 3 });
});

test("a reader that is ahead of the newest delivery continues with the first unacknowledged one", async () => {
  const stub = await createReceiver();
  const waiting = readPage(stub, { after: 100, waitMs: 60_000 });
  await stub.store(newDelivery("a"), 1);
  expect(await waiting).toMatchObject({ deliveries: [{ id: "a" }], end: 1 });
  await stub.acknowledge(1);
  expect(await readPage(stub, { after: 100 })).toEqual({ deliveries: [], end: 1 });
  for (const id of ["b", "c"]) await stub.store(newDelivery(id), 1);
  expect(await readIds(stub, { after: 100 })).toEqual(["b", "c"]);
  expect(await readPage(stub, { after: 3 })).toEqual({ deliveries: [], end: 3 });
});

/** Moves the arrival of deliveries into the past. */
const age = (stub: DurableObjectStub<Receiver>, ms: number, which = "true") =>
  runInDurableObject(stub, (_, { storage }) => {
    storage.sql.exec(
      `update deliveries set received_at_ms = received_at_ms - ? where ${which}`,
      ms,
    );
  });

test("the alarm removes deliveries that are older than the retention, and no others", async () => {
  const stub = await createReceiver();
  for (const id of ["old", "new"]) await stub.store(newDelivery(id), 1);
  await age(stub, SETTINGS.keepMs + 1, "id = 'old'");
  expect(await runDurableObjectAlarm(stub)).toBe(true);
  expect(await readIds(stub)).toEqual(["new"]);
  const position = (await read(stub))[0]!.position;
  expect(position).toBe(2);
  await age(stub, SETTINGS.keepMs + 1);
  expect(await runDurableObjectAlarm(stub)).toBe(true);
  expect(await readIds(stub)).toEqual([]);
  // A position is never reused: a reader's cursor would skip the delivery.
  await stub.store(newDelivery("next"), 1);
  expect((await read(stub))[0]!.position).toBe(3);
});

test("a shorter retention sets the alarm earlier", async () => {
  const stub = await createReceiver();
  await stub.store(newDelivery("a"), 1);
  const getAlarm = () => runInDurableObject(stub, (_, { storage }) => storage.getAlarm());
  const before = await getAlarm();
  await stub.publishSettings({ ...SETTINGS, version: 2, keepMs: DAY_MS });
  expect(before! - (await getAlarm())!).toBe(6 * DAY_MS);
});

/** Makes the receiver count this many more stored bytes. */
const fill = (stub: DurableObjectStub<Receiver>, bytes: number) =>
  runInDurableObject(stub, (_, { storage }) => {
    storage.sql.exec("update kept set bytes = bytes + ?", bytes);
  });

test("only acknowledged deliveries are removed to make room, the oldest first", async () => {
  const stub = await createReceiver();
  const body = new Uint8Array(1024 * 1024);
  for (const id of ["a", "b", "c"]) await stub.store(newDelivery(id, body), 1);
  await fill(stub, RECEIVER_STORED_MAX_BYTES - 3 * body.length - 1024);
  expect(await stub.store(newDelivery("d", body), 1)).toEqual({ outcome: "full" });
  await stub.acknowledge(2);
  expect(await stub.store(newDelivery("d", body), 1)).toEqual({ outcome: "stored" });
  expect(await readIds(stub)).toEqual(["b", "c", "d"]);
  // Both acknowledged ones would not make room for it.
  const large = newDelivery("e", new Uint8Array(3 * body.length));
  await stub.acknowledge(3);
  expect(await stub.store(large, 1)).toEqual({ outcome: "full" });
  expect(await readIds(stub)).toEqual(["b", "c", "d"]);
});

test("a receiver limits the rate of deliveries, also after hibernation", async () => {
  const stub = await createReceiver();
  expect(await stub.store(newDelivery("a"), 1)).toEqual({ outcome: "stored" });
  await runInDurableObject(stub, (_, { storage }) => {
    const { tokens, atMs } = storage.kv.get<TokenBucket>("bucket")!;
    expect(tokens).toBe(DELIVERY_BURST - 1);
    storage.kv.put("bucket", { tokens: tokens - 2 * DELIVERY_BURST, atMs });
  });
  const limited = { outcome: "rate_limited", waitMs: expect.any(Number) };
  expect(await stub.store(newDelivery("b"), 1)).toEqual(limited);
  await evictDurableObject(stub);
  expect(await stub.store(newDelivery("b"), 1)).toEqual(limited);
  expect(await readIds(stub)).toEqual(["a"]);
});

test("a large delivery counts as several, so that a receiver writes a bounded amount to the disk", async () => {
  const stub = await createReceiver();
  const units = 5;
  /** A delivery also has headers. */
  const nearly = (of: number) => of * DELIVERY_UNIT_BYTES - 1_000;
  const readTokens = () =>
    runInDurableObject(stub, (_, { storage }) => storage.kv.get<TokenBucket>("bucket")!.tokens);
  const store = (id: string, bytes: number) =>
    stub.store(newDelivery(id, new Uint8Array(bytes)), 1);
  expect(await store("a", nearly(units))).toEqual({ outcome: "stored" });
  expect(await readTokens()).toBe(DELIVERY_BURST - units);
  await runInDurableObject(stub, (_, { storage }) => {
    storage.kv.put("bucket", { tokens: units - 1, atMs: Date.now() + 3600_000 });
  });
  expect(await store("b", (units - 1) * DELIVERY_UNIT_BYTES)).toEqual({
    outcome: "rate_limited",
    waitMs: expect.any(Number),
  });
  expect(await store("c", nearly(units - 1))).toEqual({ outcome: "stored" });
});

test("a retired receiver leaves nothing in storage after an hour", async () => {
  const stub = await createReceiver();
  await stub.store(newDelivery("a"), 1);
  await stub.retire();
  const readStorage = () =>
    runInDurableObject(stub, async (_, { storage }) => ({
      keys: [...storage.kv.list()].map(([key]) => key),
      alarmAtMs: await storage.getAlarm(),
    }));
  const { keys, alarmAtMs } = await readStorage();
  expect(keys).toEqual(["retired"]);
  expect(Math.abs(alarmAtMs! - Date.now() - RETIRED_STORAGE_MS)).toBeLessThan(60_000);
  await runDurableObjectAlarm(stub);
  expect(await readStorage()).toEqual({ keys: [], alarmAtMs: null });
});

test("a retired receiver stores nothing, accepts nothing, and is not restored by late settings", async () => {
  const stub = await createReceiver();
  await stub.store(newDelivery("a"), 1);
  const waiting = read(stub, { after: 1, waitMs: 60_000 });
  await stub.retire();
  expect(await waiting).toEqual([]);
  await stub.publishSettings({ ...SETTINGS, version: 9 });
  await evictDurableObject(stub);
  expect(await stub.getSettings()).toBeNull();
  expect(await stub.store(newDelivery("b"), 1)).toEqual({ outcome: "gone" });
  expect(await readIds(stub)).toEqual([]);
});
