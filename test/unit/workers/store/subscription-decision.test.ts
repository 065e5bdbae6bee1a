/** What an update of a subscription changes, decided from rows alone. */
import { describe, expect, test } from "vitest";
import {
  decideUpdate,
  type SubscriptionRow,
} from "../../../../workers/store/billing/subscription-decision.ts";
import type { SubscriptionUpdate } from "../../../../workers/store/billing/subscription-rules.ts";

const NOW = new Date(Date.UTC(2026, 5, 1));
const at = (days: number) => new Date(NOW.getTime() + days * 24 * 3600_000);

function row(overrides: Partial<SubscriptionRow> = {}): SubscriptionRow {
  return {
    id: "sub_1",
    orgId: "00000000-0000-7000-8000-000000000000",
    source: "payments",
    status: "active",
    plan: "pro",
    cycle: "monthly",
    periodEnd: at(20),
    cancelAtPeriodEnd: false,
    eventAt: at(-10),
    askedAt: null,
    overdueSince: null,
    overduePeriodEnd: null,
    isEntitling: true,
    createdAt: at(-30),
    ...overrides,
  };
}

function update(snapshot: Partial<SubscriptionUpdate["snapshot"]> = {}): SubscriptionUpdate {
  return {
    snapshot: {
      id: "sub_1",
      customerId: "cus_1",
      status: "active",
      purchase: { plan: "pro", cycle: "monthly" },
      periodEnd: at(20),
      cancelAtPeriodEnd: false,
      ...snapshot,
    },
    occurredAt: at(-1),
    failedAt: at(-1),
    fetched: null,
  };
}

const LIVE = { isDeleted: false, now: NOW };

describe("an update", () => {
  test("of a new subscription switches to the plan that it pays for", () => {
    expect(decideUpdate([], update(), LIVE)).toMatchObject({
      kind: "applied",
      isChange: true,
      plan: { paid: "pro", reason: "paid" },
      problem: null,
    });
  });

  test("without a visible change is not in the audit log", () => {
    expect(decideUpdate([row()], update({ periodEnd: at(50) }), LIVE)).toMatchObject({
      kind: "applied",
      isChange: false,
      plan: null,
    });
  });

  test("of a price that is not in the settings keeps the plan that was bought before; without one the plan is unknown", () => {
    expect(decideUpdate([row()], update({ purchase: null }), LIVE)).toMatchObject({
      values: { plan: "pro", cycle: "monthly" },
    });
    expect(decideUpdate([], update({ purchase: null }), LIVE)).toEqual({ kind: "unknown_price" });
  });

  test("that is older changes only the overdue payment", () => {
    const known = row({ eventAt: at(0), status: "past_due", overdueSince: at(0) });
    expect(decideUpdate([known], update({ status: "past_due" }), LIVE)).toMatchObject({
      kind: "older",
      overdue: { overdueSince: at(-1) },
    });
  });

  test("about a failed payment keeps the plan, and notifies the owners once until when", () => {
    const first = decideUpdate([row()], update({ status: "past_due" }), LIVE);
    expect(first).toMatchObject({ plan: null, graceEndsAt: at(6), values: { isEntitling: true } });
    const overdue = row({ status: "past_due", overdueSince: at(-2), overduePeriodEnd: at(20) });
    expect(decideUpdate([overdue], update({ status: "past_due" }), LIVE)).toMatchObject({
      graceEndsAt: null,
    });
  });

  test.each([
    ["canceled", "canceled"],
    ["paused", "paused"],
    ["unpaid", "unpaid"],
  ] as const)("that a subscription is %s ends the plan for the reason %s", (status, reason) => {
    expect(decideUpdate([row()], update({ status }), LIVE)).toMatchObject({
      plan: { paid: null, reason },
    });
  });

  test("that makes a second subscription entitling is a payment to refund", () => {
    const other = row({ id: "sub_0", plan: "team" });
    expect(decideUpdate([other], update(), LIVE)).toMatchObject({
      plan: null,
      problem: "paid_twice",
    });
  });

  test("for a deleted organization ends the subscription, and a new payment is refunded", () => {
    const deleted = { isDeleted: true, now: NOW };
    expect(decideUpdate([], update(), deleted)).toMatchObject({
      endsSubscription: true,
      plan: null,
      problem: "paid_for_deleted",
    });
    expect(decideUpdate([row()], update(), deleted)).toMatchObject({ problem: null });
    expect(decideUpdate([row()], update({ status: "canceled" }), deleted)).toMatchObject({
      endsSubscription: false,
    });
  });
});
