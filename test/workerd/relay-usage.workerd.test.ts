/** The usage counts that a relay reports to its object, on their way to the tunnels' objects. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { Tunnel } from "../../durable-objects/tunnel.ts";
import { UsageDelivery } from "../../durable-objects/relay/usage-delivery.ts";
import type { AssociationUsage } from "../../protocol/relay/link.ts";
import { DAY_MS } from "../../shared/time.ts";
import { LiveTunnel } from "../harness/workerd/live-tunnel.ts";
import { LiveRelay } from "../harness/workerd/live-relay.ts";
import { rows } from "../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";

describe("a tunnel's usage", () => {
  const tunnelId = crypto.randomUUID();
  const usage = (bytesIn: number): AssociationUsage => ({
    tunnelId,
    source: "epoch/1",
    tokenNonce: "ab",
    connections: 1,
    openConnections: 1,
    bytesIn,
    bytesOut: 0,
  });

  test("reaches the tunnel's object, and counts once however often it is reported", async () => {
    const relay = new LiveRelay();
    const [link, tunnel] = [await relay.link(), new LiveTunnel()];
    // A relay serves a tunnel only after its agent has connected to the tunnel's object.
    await tunnel.agent();
    const report = { ...usage(7), tunnelId: tunnel.id, bytesOut: 5, connections: 2 };
    for (let times = 0; times < 3; times++) link.report({ tunnels: [report] });
    link.report({ tunnels: [{ ...report, bytesIn: 9 }] });
    await vi.waitFor(async () => {
      await runDurableObjectAlarm(tunnel.stub);
      const reported = rows.reports.findLast(({ tunnelId }) => tunnelId === tunnel.id);
      expect(reported).toMatchObject({ bytesIn: 9, bytesOut: 5 });
    }, WAIT_OPTIONS);
  });

  test("is delivered by the alarm when the tunnel's object can be reached again, also without a link", async () => {
    const relay = new LiveRelay();
    const [link, tunnel] = [await relay.link(), new LiveTunnel()];
    await tunnel.agent();
    const failing = vi.spyOn(Tunnel.prototype, "addRelayedUsage").mockImplementation(() => {
      throw new Error("overloaded");
    });
    link.report({ tunnels: [{ ...usage(7), tunnelId: tunnel.id }] });
    await vi.waitFor(() => expect(failing).toHaveBeenCalled(), WAIT_OPTIONS);
    link.socket.close(1000, "bye");
    await vi.waitFor(async () => expect(await relay.stub.isConnected()).toBe(false), WAIT_OPTIONS);
    failing.mockRestore();
    await vi.waitFor(async () => {
      await runDurableObjectAlarm(relay.stub);
      await runDurableObjectAlarm(tunnel.stub);
      const reported = rows.reports.findLast(({ tunnelId: id }) => id === tunnel.id);
      expect(reported).toMatchObject({ bytesIn: 7 });
    }, WAIT_OPTIONS);
  });

  /** @param send whether the n-th attempt, from 1 on, arrives. */
  function withDelivery(
    send: (attempt: number) => boolean | Promise<boolean>,
    act: (delivery: UsageDelivery, delivered: number[]) => Promise<void>,
  ): Promise<void> {
    return runInDurableObject(new LiveRelay().stub, async (_, { storage }) => {
      const delivered: number[] = [];
      let attempts = 0;
      const delivery = new UsageDelivery(storage.sql, async ({ bytesIn }) => {
        if (!(await send(++attempts))) throw new Error("overloaded");
        delivered.push(bytesIn);
      });
      await act(delivery, delivered);
    });
  }

  test("that is reported during a delivery is delivered afterwards, only the newest", async () => {
    const first = Promise.withResolvers<boolean>();
    const send = (attempt: number) => (attempt === 1 ? first.promise : true);
    await withDelivery(send, async (delivery, delivered) => {
      const done = delivery.deliver(usage(1));
      await delivery.deliver(usage(2));
      await delivery.deliver(usage(3));
      first.resolve(true);
      await done;
      expect(delivered).toEqual([1, 3]);
    });
  });

  test("is delivered again however often that has failed, only the newest", async () => {
    await withDelivery(
      (attempt) => attempt > 20,
      async (delivery, delivered) => {
        for (let bytes = 1; bytes <= 10; bytes++) await delivery.deliver(usage(bytes));
        for (let retries = 0; retries < 10; retries++) await delivery.retry(Date.now());
        expect([delivery.hasUndelivered, delivered]).toEqual([true, []]);
        await delivery.retry(Date.now());
        expect([delivery.hasUndelivered, delivered]).toEqual([false, [10]]);
      },
    );
  });

  test("is not replaced by an older one that waits to be delivered again", async () => {
    const others = Promise.withResolvers<boolean>();
    let outcome: boolean | Promise<boolean> = false;
    await withDelivery(
      () => outcome,
      async (delivery, delivered) => {
        for (let n = 2; n <= 40; n++) await delivery.deliver({ ...usage(0), source: `epoch/${n}` });
        await delivery.deliver(usage(1));
        outcome = others.promise;
        const retried = delivery.retry(Date.now());
        // The others occupy the retries; a newer count takes the place of the one that waits.
        outcome = false;
        await delivery.deliver(usage(2));
        outcome = true;
        others.resolve(true);
        await retried;
        expect(delivery.hasUndelivered).toBe(false);
        expect(delivered.filter((bytesIn) => bytesIn > 0)).toEqual([2]);
      },
    );
  });

  test("is stored for a week, also after a restart", async () => {
    await runInDurableObject(new LiveRelay().stub, async (_, { storage }) => {
      const fail = () => Promise.reject(new Error("overloaded"));
      await new UsageDelivery(storage.sql, fail).deliver(usage(7));
      const restarted = new UsageDelivery(storage.sql, fail);
      await restarted.retry(Date.now() + 6 * DAY_MS);
      expect(restarted.hasUndelivered).toBe(true);
      await restarted.retry(Date.now() + 8 * DAY_MS);
      expect(restarted.hasUndelivered).toBe(false);
    });
  });
});
