/** What a tunnel tells its organization: gathered, one call at a time, and nothing lost in silence. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { CaptureBatch, WatchStatus } from "../../../../durable-objects/rpc.ts";
import {
  CaptureFeed,
  FEED_MAX_ATTEMPTS,
  FEED_QUEUE_MAX_CAPTURES,
} from "../../../../durable-objects/tunnel/captures/feed.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const WATCHED: WatchStatus = { version: 1, isWatched: true };
const UNWATCHED: WatchStatus = { version: 1, isWatched: false };

class Organization {
  readonly calls: CaptureBatch[] = [];
  answer: () => Promise<WatchStatus> = () => Promise.resolve(WATCHED);
  readonly kept = new Map<string, unknown>();

  feed(): CaptureFeed {
    const kv = {
      get: <Value>(key: string) => this.kept.get(key) as Value | undefined,
      put: (key: string, value: unknown) => void this.kept.set(key, value),
    };
    const news = (call: CaptureBatch) => {
      this.calls.push(call);
      return this.answer();
    };
    return new CaptureFeed(kv, () => ({ tunnelId: "tunnel", organization: { news } }));
  }

  get told(): number {
    return this.calls.reduce((sum, { messages }) => sum + messages.length, 0);
  }
}

const summary = { id: "one" } as CaptureSummary;

test("a lone request is told at once, and those that come together in one call", async () => {
  const organization = new Organization();
  const feed = organization.feed();
  feed.add(summary);
  await vi.advanceTimersByTimeAsync(0);
  expect(organization.told).toBe(1);
  for (let i = 0; i < 50; i++) feed.add(summary);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(organization.calls.map(({ messages }) => messages.length)).toEqual([1, 50]);
});

test("while a call is on its way the next ones wait, and beyond a bound they are counted", async () => {
  const organization = new Organization();
  let release: (watch: WatchStatus) => void = () => undefined;
  organization.answer = () => new Promise((resolve) => (release = resolve));
  const feed = organization.feed();
  feed.add(summary);
  await vi.advanceTimersByTimeAsync(0);
  for (let i = 0; i < FEED_QUEUE_MAX_CAPTURES + 7; i++) feed.add(summary);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(organization.calls).toHaveLength(1);
  release(WATCHED);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(organization.calls[1]).toMatchObject({ missed: 7 });
  expect(organization.calls[1]!.messages).toHaveLength(FEED_QUEUE_MAX_CAPTURES);
});

test("what could not be told is counted as missed, and told so as soon as that works", async () => {
  const organization = new Organization();
  organization.answer = () => Promise.reject(new Error("overloaded"));
  const feed = organization.feed();
  for (let i = 0; i < 3; i++) feed.add(summary);
  await vi.advanceTimersByTimeAsync(0);
  organization.answer = () => Promise.resolve(WATCHED);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(organization.calls.at(-1)).toEqual({ tunnelId: "tunnel", messages: [], missed: 3 });
});

test("an organization that can't be reached is not asked for ever", async () => {
  const organization = new Organization();
  organization.answer = () => Promise.reject(new Error("overloaded"));
  organization.feed().add(summary);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(organization.calls).toHaveLength(FEED_MAX_ATTEMPTS);
});

test("nothing is told any more once an answer says that nobody watches, also after sleep", async () => {
  const organization = new Organization();
  organization.answer = () => Promise.resolve(UNWATCHED);
  const feed = organization.feed();
  feed.add(summary);
  await vi.advanceTimersByTimeAsync(1_000);
  for (const awake of [feed, organization.feed()]) {
    awake.add(summary);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(awake.isWatched).toBe(false);
  }
  expect(organization.calls).toHaveLength(1);
});

test("an old word does not undo a newer one", () => {
  const feed = new Organization().feed();
  feed.setWatchStatus({ version: 2, isWatched: true });
  feed.setWatchStatus({ version: 1, isWatched: false });
  expect(feed.isWatched).toBe(true);
  feed.setWatchStatus({ version: 3, isWatched: false });
  expect(feed.isWatched).toBe(false);
});
