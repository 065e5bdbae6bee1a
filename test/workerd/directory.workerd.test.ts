/** The directory's and the rate limiters' shards: what they store, and what they read from the database. */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { LOOK_UP_MISS_MS } from "../../durable-objects/directory/look-ups.ts";
import {
  AUTH_RATE_BURST,
  AUTH_RATE_REFILL_MS,
  BUCKET_SWEEP_MS,
} from "../../durable-objects/rate-limiter.ts";
import { bindings } from "../harness/workerd/live-tunnel.ts";
import { rows } from "../harness/workerd/objects.ts";

afterEach(() => void vi.useRealTimers());

const newShard = () => bindings.DIRECTORY.getByName(crypto.randomUUID());
const newName = () => crypto.randomUUID().slice(0, 8);
const countReads = (name: string) => rows.reads.filter((readName) => readName === name).length;

describe("a host name", () => {
  test("is read from its row once, and its route survives hibernation", async () => {
    const [host, shard] = [newName(), newShard()];
    const route = { tunnelId: "tunnel-1", version: 1 };
    rows.routes.set(host, route);
    expect(await Promise.all([shard.findRoute(host), shard.findRoute(host)])).toEqual([
      route,
      route,
    ]);
    await evictDurableObject(shard);
    expect(await shard.findRoute(host)).toEqual(route);
    expect(countReads(host)).toBe(1);
  });

  test("follows published versions, and never an older one", async () => {
    const [host, shard] = [newName(), newShard()];
    await shard.publishRoute(host, { tunnelId: "tunnel-2", version: 2 });
    await shard.publishRoute(host, { tunnelId: "tunnel-1", version: 1 });
    expect(await shard.findRoute(host)).toMatchObject({ tunnelId: "tunnel-2" });
    await shard.publishRoute(host, { tunnelId: null, version: 3 });
    expect(await shard.findRoute(host)).toMatchObject({ tunnelId: null });
    expect(countReads(host)).toBe(0);
  });

  test("leads to its tunnel from its publication on, even if a look-up just before found nothing", async () => {
    const [host, shard] = [newName(), newShard()];
    expect(await shard.findRoute(host)).toBeNull();
    await shard.publishRoute(host, { tunnelId: "tunnel-1", version: 1 });
    expect(await shard.findRoute(host)).toMatchObject({ tunnelId: "tunnel-1" });
  });
});

test("a webhook receiver is read from its row once, until it is removed", async () => {
  const [id, shard] = [crypto.randomUUID(), newShard()];
  rows.receivers.set(id, { version: 1, validator: "code_host", secrets: [], keepMs: 1 });
  expect(await shard.hasReceiver(id)).toBe(true);
  await evictDurableObject(shard);
  expect(await shard.hasReceiver(id)).toBe(true);
  expect(countReads(id)).toBe(1);
  rows.receivers.delete(id);
  await shard.removeReceiver(id);
  expect(await shard.hasReceiver(id)).toBe(false);
});

test("a receiver that was added needs no database", async () => {
  const [id, shard] = [crypto.randomUUID(), newShard()];
  await shard.addReceiver(id);
  expect(await shard.hasReceiver(id)).toBe(true);
  expect(countReads(id)).toBe(0);
});

test("unknown names store nothing, and are read again only after a while", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const [host, id, shard] = [newName(), crypto.randomUUID(), newShard()];
  for (let i = 0; i < 3; i += 1) {
    expect(await shard.findRoute(host)).toBeNull();
    expect(await shard.hasReceiver(id)).toBe(false);
  }
  expect([countReads(host), countReads(id)]).toEqual([1, 1]);
  await runInDurableObject(shard, async (_, { storage }) => {
    expect((await storage.list()).size).toBe(0);
  });
  vi.setSystemTime(Date.now() + LOOK_UP_MISS_MS + 1);
  expect(await shard.findRoute(host)).toBeNull();
  expect(countReads(host)).toBe(2);
});

describe("an address on the sign-in routes", () => {
  const newLimiter = () => bindings.RATE_LIMITER.getByName(crypto.randomUUID());
  const countBuckets = (limiter: ReturnType<typeof newLimiter>) =>
    runInDurableObject(limiter, (_, { storage }) => {
      const tables = storage.sql.exec("select name from sqlite_master where name = 'buckets'");
      if (tables.toArray().length === 0) return 0;
      return storage.sql.exec<{ n: number }>("select count(*) as n from buckets").one().n;
    });

  test("has a burst, then one request at a time, and hibernation does not refill it", async () => {
    const limiter = newLimiter();
    for (let i = 0; i < AUTH_RATE_BURST; i += 1) expect(await limiter.take("a")).toBe(0);
    await evictDurableObject(limiter);
    const waitMs = await limiter.take("a");
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(AUTH_RATE_REFILL_MS);
    expect(await limiter.take("b")).toBe(0);
  });

  test("that sends no more requests leaves no storage behind", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    const limiter = newLimiter();
    for (const key of ["a", "b"]) await limiter.take(key);
    vi.setSystemTime(Date.now() + AUTH_RATE_REFILL_MS - 1);
    for (let i = 0; i < AUTH_RATE_BURST; i += 1) await limiter.take("b");
    vi.setSystemTime(Date.now() + 1);
    expect(await runDurableObjectAlarm(limiter)).toBe(true);
    expect(await countBuckets(limiter)).toBe(1);
    vi.setSystemTime(Date.now() + BUCKET_SWEEP_MS);
    expect(await runDurableObjectAlarm(limiter)).toBe(true);
    expect(await countBuckets(limiter)).toBe(0);
  });
});
