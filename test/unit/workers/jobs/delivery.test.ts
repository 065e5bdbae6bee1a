/** Delivery of outbox messages, over a store and a recipient in memory. */
import { describe, expect, test } from "vitest";
import {
  deliverMessages,
  retryMails,
  retryOutbox,
  withTimeLimit,
  type RetryDeps,
} from "../../../../workers/jobs/delivery.ts";
import type { OutboxRow } from "../../../../workers/store/outbox-messages.ts";

function message(id: number): OutboxRow {
  return { id, attempts: 0, kind: "custom_hostname", payload: { domain: `${id}.example` } };
}

function mail(id: number): OutboxRow {
  return { id, attempts: 0, kind: "mail", payload: { sealed: "…" } };
}

/** @param canDeliver which messages arrive; the others fail with an error. */
function setUp(canDeliver: (row: OutboxRow) => boolean, overrides: Partial<RetryDeps> = {}) {
  const events: { event: string; fields: Record<string, unknown> }[] = [];
  const deleted: number[] = [];
  const errors: { id: number; error: string }[] = [];
  const deps: RetryDeps = {
    deliver: (row) =>
      canDeliver(row) ? Promise.resolve() : Promise.reject(new Error("unreachable: a@b.example")),
    deleteMessages: (ids) => Promise.resolve(void deleted.push(...ids)),
    saveErrors: (failures) => Promise.resolve(void errors.push(...failures)),
    claimDueMessages: () => Promise.resolve([]),
    parkUndeliverable: () => Promise.resolve([]),
    deleteOverdueMails: () => Promise.resolve(0),
    log: (_level, event, fields) => void events.push({ event, fields }),
    describeError: String,
    ...overrides,
  };
  return { deps, events, deleted, errors };
}

describe("delivering messages", () => {
  test("deletes those that arrived, and saves in the others why they did not", async () => {
    const { deps, deleted, errors, events } = setUp(({ id }) => id !== 2);
    expect(await deliverMessages(deps, [message(1), message(2), message(3)])).toBe(2);
    expect(deleted).toEqual([1, 3]);
    expect(errors).toEqual([{ id: 2, error: "Error: unreachable: a@b.example" }]);
    expect(events.map(({ event }) => event)).toEqual(["delivery_failed"]);
  });

  test("stores only the kind of a mail's failure: the server's answer may contain the address", async () => {
    const { deps, errors } = setUp(() => false);
    await deliverMessages(deps, [mail(1)]);
    expect(errors).toEqual([{ id: 1, error: "Error" }]);
  });

  test("counts what arrived although the database can't be reached afterwards", async () => {
    const down = () => Promise.reject(new Error("no connection"));
    const { deps, events } = setUp(({ id }) => id === 1, {
      deleteMessages: down,
      saveErrors: down,
    });
    expect(await deliverMessages(deps, [message(1), message(2)])).toBe(1);
    expect(events.map(({ event }) => event)).toEqual([
      "delivery_failed",
      "outbox_not_cleared",
      "delivery_errors_not_saved",
    ]);
  });
});

describe("the scheduled job", () => {
  test("parks before it claims, and reports the parked messages", async () => {
    const order: string[] = [];
    const { deps, events } = setUp(() => true, {
      parkUndeliverable: () => {
        order.push("park");
        return Promise.resolve([{ id: 7, kind: "tunnel_settings" as const }]);
      },
      claimDueMessages: () => {
        order.push("claim");
        return Promise.resolve([message(8)]);
      },
    });
    await retryOutbox(deps, 2);
    expect(order).toEqual(["park", "claim"]);
    expect(events).toEqual([
      { event: "messages_parked", fields: { messages: [{ id: 7, kind: "tunnel_settings" }] } },
    ]);
  });

  describe.each([
    { name: "mails", retry: retryMails, create: mail },
    { name: "other messages", retry: retryOutbox, create: message },
  ])("for $name", ({ retry, create }) => {
    test("continues while batches are full and some are delivered", async () => {
      const batches = [[create(1), create(2)], [create(3), create(4)], [create(5)]];
      const { deps, deleted } = setUp(({ id }) => id !== 4, {
        claimDueMessages: () => Promise.resolve(batches.shift() ?? []),
      });
      await retry(deps, 2);
      expect(deleted).toEqual([1, 2, 3, 5]);
    });

    test("stops when none of a batch is delivered", async () => {
      const batches = [
        [create(1), create(2)],
        [create(3), create(4)],
      ];
      const { deps } = setUp(() => false, {
        claimDueMessages: () => Promise.resolve(batches.shift() ?? []),
      });
      await retry(deps, 2);
      expect(batches).toHaveLength(1);
    });
  });
});

describe("the time limit of a call", () => {
  test("passes on an answer and an error", async () => {
    expect(await withTimeLimit(60_000, Promise.resolve("sent"))).toBe("sent");
    await expect(withTimeLimit(60_000, Promise.reject(new Error("refused")))).rejects.toThrow(
      "refused",
    );
  });

  test("ends a call that is never answered", async () => {
    await expect(withTimeLimit(1, new Promise(() => undefined))).rejects.toThrow("within 1 ms");
  });
});
