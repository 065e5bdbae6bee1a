/** A tunnel sends its captures to its organization in batches, one call at a time, and counts what it could not send. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { CaptureBatch, WatchStatus } from "../../../../durable-objects/rpc.ts";
import {
  CaptureFeed,
  FEED_MAX_ATTEMPTS,
  FEED_QUEUE_MAX_CAPTURES,
  FEED_UNWATCHED_MS,
} from "../../../../durable-objects/tunnel/captures/feed.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const WATCHED: WatchStatus = { version: 1, isWatched: true };
const UNWATCHED: WatchStatus = { version: 1, isWatched: false };

class Organization {
  readonly calls: CaptureBatch[] = [];
  answer: () => Promise<WatchStatus> = () => Promise.resolve(WATCHED);
  readonly stored = new Map<string, unknown>();
  hasAgent = true;

  feed(): CaptureFeed {
    const kv = {
      get: <Value>(key: string) => this.stored.get(key) as Value | undefined,
      put: (key: string, value: unknown) => void this.stored.set(key, value),
    };
    const deliverCaptures = (batch: CaptureBatch) => {
      this.calls.push(batch);
      return this.answer();
    };
    const owner = { tunnelId: "tunnel", organization: { deliverCaptures } };
    const { hasAgent } = this;
    return new CaptureFeed(kv, { hasAgent, findOwner: () => Promise.resolve(owner) });
  }

  get deliveredCount(): number {
    return this.calls.reduce((sum, { messages }) => sum + messages.length, 0);
  }
}

const summary = { id: "one" } as CaptureSummary;

test("a single request is sent at once, and several requests in one call", async () => {
  const organization = new Organization();
  const feed = organization.feed();
  feed.add(summary);
  await vi.advanceTimersByTimeAsync(0);
  expect(organization.deliveredCount).toBe(1);
  for (let i = 0; i < 50; i++) feed.add(summary);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(organization.calls.map(({ messages }) => messages.length)).toEqual([1, 50]);
});

test("requests wait during a call, and are counted as missed when too many wait", async () => {
  const organization = new Organization();
  let respond: (status: WatchStatus) => void = () => undefined;
  organization.answer = () => new Promise((resolve) => (respond = resolve));
  const feed = organization.feed();
  feed.add(summary);
  await vi.advanceTimersByTimeAsync(0);
  for (let i = 0; i < FEED_QUEUE_MAX_CAPTURES + 7; i++) feed.add(summary);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(organization.calls).toHaveLength(1);
  respond(WATCHED);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(organization.calls[1]).toMatchObject({ missed: 7 });
  expect(organization.calls[1]!.messages).toHaveLength(FEED_QUEUE_MAX_CAPTURES);
});

test("requests of a failed call are counted as missed, and the count is sent by the next call", async () => {
  const organization = new Organization();
  organization.answer = () => Promise.reject(new Error("overloaded"));
  const feed = organization.feed();
  for (let i = 0; i < 3; i++) feed.add(summary);
  await vi.advanceTimersByTimeAsync(0);
  organization.answer = () => Promise.resolve(WATCHED);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(organization.calls.at(-1)).toEqual({ tunnelId: "tunnel", messages: [], missed: 3 });
});

test("an unreachable organization is not called forever", async () => {
  const organization = new Organization();
  organization.answer = () => Promise.reject(new Error("overloaded"));
  organization.feed().add(summary);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(organization.calls).toHaveLength(FEED_MAX_ATTEMPTS);
});

test("nothing is sent after a response says that the tunnel is not watched, also after hibernation", async () => {
  const organization = new Organization();
  organization.answer = () => Promise.resolve(UNWATCHED);
  const feed = organization.feed();
  feed.add(summary);
  await vi.advanceTimersByTimeAsync(1_000);
  for (const instance of [feed, organization.feed()]) {
    instance.add(summary);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(instance.isWatched).toBe(false);
  }
  expect(organization.calls).toHaveLength(1);
});

test("a tunnel without an agent asks again after hibernation and after half an hour, because it may not be notified", async () => {
  const organization = new Organization();
  organization.hasAgent = false;
  organization.answer = () => Promise.resolve(UNWATCHED);
  const feed = organization.feed();
  for (let calls = 1; calls <= 2; calls += 1) {
    for (let i = 0; i < 3; i += 1) {
      feed.add(summary);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(organization.calls).toHaveLength(calls);
    vi.setSystemTime(Date.now() + FEED_UNWATCHED_MS);
  }
  organization.feed().add(summary);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(organization.calls).toHaveLength(3);
});

test("an older status does not replace a newer one", () => {
  const feed = new Organization().feed();
  feed.setWatchStatus({ version: 2, isWatched: true });
  feed.setWatchStatus({ version: 1, isWatched: false });
  expect(feed.isWatched).toBe(true);
  feed.setWatchStatus({ version: 3, isWatched: false });
  expect(feed.isWatched).toBe(false);
});
