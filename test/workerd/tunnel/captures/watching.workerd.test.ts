/** Watchers at the organization's object, and what tunnels tell it for them. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ERROR_HEADER } from "../../../../protocol/errors.ts";
import {
  WATCH_BEHIND_MAX_MS,
  WATCH_UNACKNOWLEDGED_BURST_BYTES,
} from "../../../../durable-objects/organization/pace.ts";
import { WATCH_SESSION_RETRY_MS } from "../../../../durable-objects/organization.ts";
import { WATCH_CLOSE } from "../../../../protocol/schemas/inspector/watching.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { TestWatcher, WatchedOrganization } from "../../../harness/workerd/watching.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => {
  vi.useRealTimers();
  rows.areAway = false;
});

const some = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
const tunnelId = crypto.randomUUID();

async function hears(watcher: TestWatcher, numbers: number[]): Promise<void> {
  await vi.waitFor(() => expect(watcher.numbers).toEqual(numbers), WAIT_OPTIONS);
}

describe("a watcher", () => {
  test("hears what its organization's tunnels tell, one request a message", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.news(tunnelId, 0, 3);
    await hears(watcher, some(0, 3));
    expect(watcher.messages).toBe(3);
  });

  test("that asks for it gets several in one message", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ isBatched: true });
    await org.news(tunnelId, 0, 10);
    await hears(watcher, some(0, 10));
    expect(watcher.messages).toBe(1);
  });

  test("of one tunnel hears of no other", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ tunnelId });
    await org.news(crypto.randomUUID(), 100, 1);
    await org.news(tunnelId, 0, 2);
    await hears(watcher, some(0, 2));
  });

  test("hears nothing of another organization", async () => {
    const [org, other] = [new WatchedOrganization(), new WatchedOrganization()];
    const [watcher, stranger] = [await org.watcher(), await other.watcher()];
    await org.news(tunnelId, 0, 1);
    await other.news(tunnelId, 7, 1);
    await hears(watcher, [0]);
    await hears(stranger, [7]);
  });

  test("is answered its ping while the object sleeps, and hears the next request after it", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.news(tunnelId, 0, 1);
    await hears(watcher, [0]);
    await org.sleep();
    watcher.socket.send("ping");
    expect(await watcher.message()).toBe("pong");
    await org.news(tunnelId, 1, 1);
    await hears(watcher, [0, 1]);
  });

  test("may say whatever it wants, and is none the worse for it", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    for (const nonsense of ["{", "null", "[]", '{"type":"sync"}', '{"type":"sync","n":1e99}']) {
      watcher.socket.send(nonsense);
    }
    watcher.socket.send(new Uint8Array(100_000));
    watcher.socket.send("x".repeat(100_000));
    await org.news(tunnelId, 0, 1);
    await hears(watcher, [0]);
  });
});

describe("a watcher that is slow", () => {
  /** Of messages that are 12 bytes long at least. */
  const tooMany = WATCH_UNACKNOWLEDGED_BURST_BYTES / 12 + 1_000;

  test("is told how many it missed, and then the next ones, also after sleep", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ isBatched: true });
    for (let from = 0; from < tooMany; from += 1_000) await org.news(tunnelId, from, 1_000);
    const offered = Math.ceil(tooMany / 1_000) * 1_000;
    await org.sleep();
    await vi.waitFor(() => expect(watcher.numbers.length + watcher.missed).toBe(offered), WAIT_OPTIONS);
    expect(watcher.missed).toBeGreaterThan(0);
    expect(watcher.numbers).toEqual(some(0, watcher.numbers.length));
    await org.news(tunnelId, 1_000_000, 1);
    await vi.waitFor(() => expect(watcher.numbers.at(-1)).toBe(1_000_000), WAIT_OPTIONS);
  });

  test("hears everything at any rate as long as it answers", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ isBatched: true });
    await org.news(tunnelId, 0, 100);
    for (let from = 100; from < tooMany; from += 1_000) {
      await vi.waitFor(() => expect(watcher.numbers).toHaveLength(from), WAIT_OPTIONS);
      watcher.answer();
      await org.news(tunnelId, from, 1_000);
    }
    await vi.waitFor(() => expect(watcher.numbers.length).toBeGreaterThan(tooMany), WAIT_OPTIONS);
    expect(watcher.missed).toBe(0);
  });

  test("is let go when it stops answering for good, and hinders nobody meanwhile", async () => {
    const org = new WatchedOrganization();
    const [stuck, other] = [
      await org.watcher({ isBatched: true }),
      await org.watcher({ isBatched: true, tunnelId }),
    ];
    await org.news(tunnelId, 0, 100);
    for (const watcher of [stuck, other]) {
      await vi.waitFor(() => expect(watcher.syncs).not.toEqual([]), WAIT_OPTIONS);
      watcher.answer();
    }
    let told = 100;
    while (told * 12 < 1_500_000) {
      await org.news(tunnelId, told, 1_000);
      told += 1_000;
      await vi.waitFor(() => expect(other.numbers).toHaveLength(told), WAIT_OPTIONS);
      other.answer();
    }
    expect(stuck.numbers.length).toBeLessThan(told);
    vi.useFakeTimers({ now: Date.now() + WATCH_BEHIND_MAX_MS, toFake: ["Date"] });
    expect((await stuck.closed).code).toBe(WATCH_CLOSE.too_slow);
    await org.news(tunnelId, told, 1);
    await vi.waitFor(() => expect(other.numbers.at(-1)).toBe(told), WAIT_OPTIONS);
  });

  test("is told of what a tunnel could not tell", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.news(tunnelId, 0, 1, 5);
    await vi.waitFor(() => expect(watcher.missed).toBe(5), WAIT_OPTIONS);
    expect(watcher.numbers).toEqual([0]);
  });
});

describe("watching ends", () => {
  test("with the session, the membership or the organization, and for nobody else", async () => {
    const org = new WatchedOrganization();
    const [sessionId, userId] = [crypto.randomUUID(), crypto.randomUUID()];
    const session = await org.watcher({ sessionId });
    const person = [await org.watcher({ userId }), await org.watcher({ userId, tunnelId })];
    const other = await org.watcher();
    await org.sleep();

    await org.stub.closeWatchers({ sessionIds: [sessionId] });
    expect(await session.closed).toEqual({ code: 4401, reason: "session_ended" });
    await org.stub.closeWatchers({ userId });
    for (const watcher of person) expect((await watcher.closed).code).toBe(4401);
    await org.news(tunnelId, 0, 1);
    await hears(other, [0]);
    for (const watcher of [session, ...person]) expect(watcher.numbers).toEqual([]);
    await org.stub.closeWatchers("everybody");
    expect((await other.closed).code).toBe(4401);
  });

  test("when rows say that the session is over, should nobody have told so", async () => {
    const org = new WatchedOrganization();
    const sessionId = crypto.randomUUID();
    const [over, alive] = [await org.watcher({ sessionId }), await org.watcher()];
    await org.sleep();
    rows.endedSessions.add(sessionId);
    expect(await runDurableObjectAlarm(org.stub)).toBe(true);
    expect((await over.closed).code).toBe(4401);
    await org.news(tunnelId, 0, 1);
    await hears(alive, [0]);
    // And asked again later.
    expect(
      await runInDurableObject(org.stub, (_, { storage }) => storage.getAlarm()),
    ).not.toBeNull();
  });

  test("before it begins, when the session ended while its watcher was on the way", async () => {
    const org = new WatchedOrganization();
    const sessionId = crypto.randomUUID();
    rows.endedSessions.add(sessionId);
    const refusal = (await org
      .watcher({ sessionId })
      .catch((thrown: unknown) => thrown)) as Response;
    expect(refusal.headers.get(ERROR_HEADER)).toBe("unauthorized");
    expect(await org.news(tunnelId, 0, 1)).toMatchObject({ isWatched: false });
  });

  test("also when rows could not be asked for longer than an alarm is tried again", async () => {
    const org = new WatchedOrganization();
    const sessionId = crypto.randomUUID();
    const over = await org.watcher({ sessionId });
    rows.endedSessions.add(sessionId);
    rows.areAway = true;
    for (let tries = 0; tries < 10; tries++) {
      expect(await runDurableObjectAlarm(org.stub)).toBe(true);
    }
    const atMs = await runInDurableObject(org.stub, (_, { storage }) => storage.getAlarm());
    expect(atMs).toBeLessThanOrEqual(Date.now() + WATCH_SESSION_RETRY_MS);
    rows.areAway = false;
    expect(await runDurableObjectAlarm(org.stub)).toBe(true);
    expect((await over.closed).code).toBe(4401);
  });

  test("before it begins, when nobody can say whether the session lives", async () => {
    const org = new WatchedOrganization();
    rows.areAway = true;
    await expect(org.watcher()).rejects.toThrow();
    expect(await org.news(tunnelId, 0, 1)).toMatchObject({ isWatched: false });
  });

  test("with a stop of the server, after which nobody is let in", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.stub.drain();
    expect((await watcher.closed).code).toBe(WATCH_CLOSE.going_away);
    const refusal = (await org.watcher().catch((thrown: unknown) => thrown)) as Response;
    expect(refusal.headers.get(ERROR_HEADER)).toBe("unavailable");
  });
});

describe("a tunnel", () => {
  test("tells only while somebody watches, from before the watcher is welcomed", async () => {
    const org = new WatchedOrganization();
    expect(await org.news(tunnelId, 0, 1)).toMatchObject({ isWatched: false });
    const { tunnel } = await org.agent();
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(1), WAIT_OPTIONS);
    const watchOf = () =>
      runInDurableObject(tunnel.stub, (_, { storage }) => storage.kv.get("watch"));
    const watcher = await org.watcher();
    expect(await watchOf()).toMatchObject({ isWatched: true });
    const { tunnel: later } = await org.agent();
    await vi.waitFor(async () => {
      const watch = await runInDurableObject(later.stub, (_, { storage }) =>
        storage.kv.get("watch"),
      );
      expect(watch).toMatchObject({ isWatched: true });
    }, WAIT_OPTIONS);

    watcher.socket.close(1000, "bye");
    await watcher.closed;
    await vi.waitFor(async () => {
      expect(await org.news(tunnel.id, 0, 1)).toMatchObject({ isWatched: false });
    }, WAIT_OPTIONS);
  });

  test("of which somebody else's watch ended goes on for the others", async () => {
    const org = new WatchedOrganization();
    const one = await org.watcher({ tunnelId });
    const all = await org.watcher();
    one.socket.close(1000, "bye");
    await one.closed;
    expect(await org.news(tunnelId, 0, 1)).toMatchObject({ isWatched: true });
    await hears(all, [0]);
  });
});
