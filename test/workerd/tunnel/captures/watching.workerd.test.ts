/** Watchers at the organization's object, and the batches that tunnels send to it. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  WATCH_BEHIND_MAX_MS,
  WATCH_UNACKNOWLEDGED_BURST_BYTES,
} from "../../../../durable-objects/organization/watcher-flow-control.ts";
import { WATCH_SESSION_RETRY_MS } from "../../../../durable-objects/organization.ts";
import {
  DELIVERY_BUDGET,
  Watchers,
  WATCHERS_MAX,
} from "../../../../durable-objects/organization/watchers.ts";
import { WATCH_CLOSE } from "../../../../protocol/captures/watch-protocol.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { TestWatcher, WatchedOrganization } from "../../../harness/workerd/watching.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => {
  vi.useRealTimers();
  rows.isDatabaseDown = false;
});

const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);
const tunnelId = crypto.randomUUID();

async function expectReceived(watcher: TestWatcher, numbers: number[]): Promise<void> {
  await vi.waitFor(() => expect(watcher.numbers).toEqual(numbers), WAIT_OPTIONS);
}

describe("a watcher", () => {
  test("receives the requests of its organization's tunnels, one per message", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.deliverNumbered(tunnelId, 0, 3);
    await expectReceived(watcher, range(0, 3));
    expect(watcher.messages).toBe(3);
  });

  test("that asks for batches receives several requests in one message", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ isBatched: true });
    await org.deliverNumbered(tunnelId, 0, 10);
    await expectReceived(watcher, range(0, 10));
    expect(watcher.messages).toBe(1);
  });

  test("of one tunnel receives nothing of others", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ tunnelId });
    await org.deliverNumbered(crypto.randomUUID(), 100, 1);
    await org.deliverNumbered(tunnelId, 0, 2);
    await expectReceived(watcher, range(0, 2));
  });

  test("receives nothing of another organization", async () => {
    const [org, other] = [new WatchedOrganization(), new WatchedOrganization()];
    const [watcher, otherWatcher] = [await org.watcher(), await other.watcher()];
    await org.deliverNumbered(tunnelId, 0, 1);
    await other.deliverNumbered(tunnelId, 7, 1);
    await expectReceived(watcher, [0]);
    await expectReceived(otherWatcher, [7]);
  });

  test("gets a pong while the object hibernates, and receives the next request", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.deliverNumbered(tunnelId, 0, 1);
    await expectReceived(watcher, [0]);
    await org.sleep();
    watcher.socket.send("ping");
    expect(await watcher.nextMessage()).toBe("pong");
    await org.deliverNumbered(tunnelId, 1, 1);
    await expectReceived(watcher, [0, 1]);
  });

  test("may send invalid messages, which change nothing", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    for (const invalid of ["{", "null", "[]", '{"type":"sync"}', '{"type":"sync","n":1e99}']) {
      watcher.socket.send(invalid);
    }
    watcher.socket.send(new Uint8Array(100_000));
    watcher.socket.send("x".repeat(100_000));
    await org.deliverNumbered(tunnelId, 0, 1);
    await expectReceived(watcher, [0]);
  });
});

test("an organization has a bounded number of watchers, and the next one is refused", async () => {
  const org = new WatchedOrganization();
  await org.watcher();
  const attachment: unknown = await runInDurableObject(org.stub, (_, state) =>
    state.getWebSockets()[0]!.deserializeAttachment(),
  );
  const countUpTo = (count: number) => {
    const getWebSockets = () =>
      range(0, count).map(() => ({
        readyState: WebSocket.OPEN,
        deserializeAttachment: () => attachment,
      }));
    return new Watchers({ getWebSockets, setWebSocketAutoResponse() {} } as never);
  };
  expect(countUpTo(WATCHERS_MAX - 1).isFull).toBe(false);
  expect(countUpTo(WATCHERS_MAX).isFull).toBe(true);
  const isFull = vi.spyOn(Watchers.prototype, "isFull", "get").mockReturnValue(true);
  await expect(org.watcher()).rejects.toMatchObject({ code: "rate_limited" });
  isFull.mockRestore();
  await org.watcher();
});

test("watchers of an organization are sent a bounded number of messages together, and take turns", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const org = new WatchedOrganization();
  const first = [await org.watcher(), await org.watcher()];
  const second = [await org.watcher(), await org.watcher()];
  await org.deliverNumbered(tunnelId, 0, 1_500);
  await expectReceived(first[0]!, range(0, 1_500));
  // Enough for another batch, which begins with the others.
  vi.setSystemTime(Date.now() + DELIVERY_BUDGET.burst * DELIVERY_BUDGET.refillMs);
  await org.deliverNumbered(tunnelId, 1_500, 1_500);
  await expectReceived(second[0]!, range(1_500, 1_500));
  vi.setSystemTime(Date.now() + DELIVERY_BUDGET.burst * DELIVERY_BUDGET.refillMs);
  await org.deliverNumbered(tunnelId, 3_000, 1);
  const watchers = [...first, ...second];
  for (const watcher of watchers) {
    await vi.waitFor(() => expect(watcher.numbers.at(-1)).toBe(3_000), WAIT_OPTIONS);
    expect(watcher.missed + watcher.numbers.length).toBe(3_001);
  }
  const sent = watchers.reduce((sum, { numbers }) => sum + numbers.length, 0);
  expect(sent).toBeLessThanOrEqual(2 * DELIVERY_BUDGET.burst + watchers.length);
});

describe("a watcher that is slow", () => {
  /** Each message has at least 12 bytes. */
  const tooMany = WATCH_UNACKNOWLEDGED_BURST_BYTES / 12 + 1_000;

  test("receives the number of missed requests and then the next ones, also after hibernation", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ isBatched: true });
    for (let from = 0; from < tooMany; from += 1_000)
      await org.deliverNumbered(tunnelId, from, 1_000);
    const offered = Math.ceil(tooMany / 1_000) * 1_000;
    await org.sleep();
    await vi.waitFor(
      () => expect(watcher.numbers.length + watcher.missed).toBe(offered),
      WAIT_OPTIONS,
    );
    expect(watcher.missed).toBeGreaterThan(0);
    expect(watcher.numbers).toEqual(range(0, watcher.numbers.length));
    await org.deliverNumbered(tunnelId, 1_000_000, 1);
    await vi.waitFor(() => expect(watcher.numbers.at(-1)).toBe(1_000_000), WAIT_OPTIONS);
  });

  test("receives everything at any rate as long as it acknowledges", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher({ isBatched: true });
    await org.deliverNumbered(tunnelId, 0, 100);
    for (let from = 100; from < tooMany; from += 1_000) {
      await vi.waitFor(() => expect(watcher.numbers).toHaveLength(from), WAIT_OPTIONS);
      watcher.answer();
      await org.deliverNumbered(tunnelId, from, 1_000);
    }
    await vi.waitFor(() => expect(watcher.numbers.length).toBeGreaterThan(tooMany), WAIT_OPTIONS);
    expect(watcher.missed).toBe(0);
  });

  test("is disconnected when it stops acknowledging, and does not delay other watchers", async () => {
    const org = new WatchedOrganization();
    const [stuck, other] = [
      await org.watcher({ isBatched: true }),
      await org.watcher({ isBatched: true, tunnelId }),
    ];
    await org.deliverNumbered(tunnelId, 0, 100);
    for (const watcher of [stuck, other]) {
      await vi.waitFor(() => expect(watcher.syncs).not.toEqual([]), WAIT_OPTIONS);
      watcher.answer();
    }
    let sent = 100;
    while (sent * 12 < 1_500_000) {
      await org.deliverNumbered(tunnelId, sent, 1_000);
      sent += 1_000;
      await vi.waitFor(() => expect(other.numbers).toHaveLength(sent), WAIT_OPTIONS);
      other.answer();
    }
    expect(stuck.numbers.length).toBeLessThan(sent);
    vi.useFakeTimers({ now: Date.now() + WATCH_BEHIND_MAX_MS, toFake: ["Date"] });
    expect((await stuck.closed).code).toBe(WATCH_CLOSE.too_slow);
    await org.deliverNumbered(tunnelId, sent, 1);
    await vi.waitFor(() => expect(other.numbers.at(-1)).toBe(sent), WAIT_OPTIONS);
  });

  test("receives the number of requests that a tunnel could not send", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.deliverNumbered(tunnelId, 0, 1, 5);
    await vi.waitFor(() => expect(watcher.missed).toBe(5), WAIT_OPTIONS);
    expect(watcher.numbers).toEqual([0]);
  });
});

describe("a watch ends", () => {
  test("with the session, the membership or the organization, and no other watch does", async () => {
    const org = new WatchedOrganization();
    const [sessionId, userId] = [crypto.randomUUID(), crypto.randomUUID()];
    const session = await org.watcher({ credentialId: sessionId });
    const person = [await org.watcher({ userId }), await org.watcher({ userId, tunnelId })];
    const other = await org.watcher();
    await org.sleep();

    await org.stub.closeWatchers({ sessionIds: [sessionId] });
    expect(await session.closed).toEqual({ code: 4401, reason: "session_ended" });
    await org.stub.closeWatchers({ userId });
    for (const watcher of person) expect((await watcher.closed).code).toBe(4401);
    await org.deliverNumbered(tunnelId, 0, 1);
    await expectReceived(other, [0]);
    for (const watcher of [session, ...person]) expect(watcher.numbers).toEqual([]);
    await org.stub.closeWatchers("everybody");
    expect((await other.closed).code).toBe(4401);
  });

  test("when the database shows that the session has ended, even if no notification has arrived", async () => {
    const org = new WatchedOrganization();
    const sessionId = crypto.randomUUID();
    const [ended, live] = [await org.watcher({ credentialId: sessionId }), await org.watcher()];
    await org.sleep();
    rows.endedSessions.add(sessionId);
    expect(await runDurableObjectAlarm(org.stub)).toBe(true);
    expect((await ended.closed).code).toBe(4401);
    await org.deliverNumbered(tunnelId, 0, 1);
    await expectReceived(live, [0]);
    // The next check is scheduled.
    expect(
      await runInDurableObject(org.stub, (_, { storage }) => storage.getAlarm()),
    ).toBeGreaterThan(Date.now());
  });

  test("before it begins when the session ends while the watcher connects", async () => {
    const org = new WatchedOrganization();
    const sessionId = crypto.randomUUID();
    rows.endedSessions.add(sessionId);
    await expect(org.watcher({ credentialId: sessionId })).rejects.toMatchObject({
      code: "unauthorized",
    });
    expect(await org.deliverNumbered(tunnelId, 0, 1)).toMatchObject({ isWatched: false });
  });

  test("also when the database was unreachable for longer than the platform retries an alarm", async () => {
    const org = new WatchedOrganization();
    const sessionId = crypto.randomUUID();
    const ended = await org.watcher({ credentialId: sessionId });
    rows.endedSessions.add(sessionId);
    rows.isDatabaseDown = true;
    for (let attempts = 0; attempts < 10; attempts++) {
      expect(await runDurableObjectAlarm(org.stub)).toBe(true);
    }
    const atMs = await runInDurableObject(org.stub, (_, { storage }) => storage.getAlarm());
    expect(atMs).toBeLessThanOrEqual(Date.now() + WATCH_SESSION_RETRY_MS);
    rows.isDatabaseDown = false;
    expect(await runDurableObjectAlarm(org.stub)).toBe(true);
    expect((await ended.closed).code).toBe(4401);
  });

  test("before it begins when the session can't be checked", async () => {
    const org = new WatchedOrganization();
    rows.isDatabaseDown = true;
    await expect(org.watcher()).rejects.toThrow();
    expect(await org.deliverNumbered(tunnelId, 0, 1)).toMatchObject({ isWatched: false });
  });

  test("when the server stops, and no new one begins", async () => {
    const org = new WatchedOrganization();
    const watcher = await org.watcher();
    await org.stub.drain();
    expect((await watcher.closed).code).toBe(WATCH_CLOSE.going_away);
    await expect(org.watcher()).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("a tunnel", () => {
  test("sends requests only while it is watched, from before the watcher is accepted", async () => {
    const org = new WatchedOrganization();
    expect(await org.deliverNumbered(tunnelId, 0, 1)).toMatchObject({ isWatched: false });
    const { tunnel } = await org.agent();
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(1), WAIT_OPTIONS);
    const readStatus = () =>
      runInDurableObject(tunnel.stub, (_, { storage }) => storage.kv.get("watch"));
    const watcher = await org.watcher();
    expect(await readStatus()).toMatchObject({ isWatched: true });
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
      expect(await org.deliverNumbered(tunnel.id, 0, 1)).toMatchObject({ isWatched: false });
    }, WAIT_OPTIONS);
  });

  test("is still watched after one of several watchers disconnects", async () => {
    const org = new WatchedOrganization();
    const one = await org.watcher({ tunnelId });
    const all = await org.watcher();
    one.socket.close(1000, "bye");
    await one.closed;
    expect(await org.deliverNumbered(tunnelId, 0, 1)).toMatchObject({ isWatched: true });
    await expectReceived(all, [0]);
  });
});
