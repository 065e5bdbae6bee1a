/** What news of a subscription comes to, in whatever order it is told. */
import { describe, expect, test } from "vitest";
import type { SubscriptionStatus } from "../../../../protocol/schemas/billing.ts";
import {
  getGraceEnd,
  isEntitling,
  compareUpdate,
  computeOverdue,
  findPaidPlan,
  pickCurrentSubscription,
  type KnownSubscription,
  type SubscriptionUpdate,
} from "../../../../workers/store/billing/subscription-rules.ts";

const DAY_MS = 24 * 3600_000;
const START = Date.UTC(2026, 0, 1);
const at = (seconds: number) => new Date(START + seconds * 1000);
const PERIOD_END = at(30 * 24 * 3600);

function news(status: SubscriptionStatus, seconds: number, asked: SubscriptionUpdate["fetched"] = null): SubscriptionUpdate {
  const bought = { plan: "pro", cycle: "monthly" } as const;
  const snapshot = { id: "s", customerId: "c", status, bought, periodEnd: PERIOD_END };
  const dated = { at: at(seconds), failedAt: at(seconds) };
  return { snapshot: { ...snapshot, cancelAtPeriodEnd: false }, ...dated, fetched };
}

const FIRST: KnownSubscription = {
  status: "active",
  eventAt: at(10),
  askedAt: null,
  overdueSince: null,
  overduePeriodEnd: null,
};

/** As the store does it; what is in doubt is settled by asking for `truth`. */
function take(known: KnownSubscription | null, told: SubscriptionUpdate, truth: SubscriptionUpdate): KnownSubscription {
  let judged = told;
  if (compareUpdate(known, judged) === "inconclusive")
    judged = { ...told, snapshot: truth.snapshot, fetched: { at: at(9e6), basedOn: known } };
  const verdict = compareUpdate(known, judged);
  if (verdict === "inconclusive") throw new Error("what was asked is in doubt");
  const overdue = computeOverdue(known, judged, verdict);
  if (known && verdict === "older") return { ...known, ...overdue };
  const askedAt = judged.fetched?.at ?? known?.askedAt ?? null;
  const eventAt = known && known.eventAt > judged.occurredAt ? known.eventAt : judged.occurredAt;
  return { status: judged.snapshot.status, eventAt, askedAt, ...overdue };
}

function* orders<Item>(items: Item[]): Generator<Item[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries()) {
    for (const rest of orders(items.toSpliced(index, 1))) yield [item, ...rest];
  }
}

describe("what is told last holds, in all orders in which it can be told", () => {
  test.each<[string, [SubscriptionStatus, number][]]>([
    [
      "a purchase",
      [
        ["incomplete", 1],
        ["active", 2],
      ],
    ],
    [
      "a purchase within one second",
      [
        ["incomplete", 1],
        ["active", 1],
      ],
    ],
    [
      "a payment that fails and is made",
      [
        ["active", 1],
        ["past_due", 2],
        ["active", 3],
      ],
    ],
    [
      "a payment that is given up",
      [
        ["active", 1],
        ["past_due", 5],
        ["past_due", 9],
        ["unpaid", 12],
      ],
    ],
    [
      "an end",
      [
        ["active", 1],
        ["past_due", 2],
        ["active", 2],
        ["canceled", 3],
      ],
    ],
    [
      "an end within one second",
      [
        ["active", 3],
        ["canceled", 3],
      ],
    ],
    [
      "a trial",
      [
        ["trialing", 1],
        ["active", 5],
        ["past_due", 6],
        ["past_due", 8],
      ],
    ],
  ])("%s", (_what, told) => {
    const truth = news(...told.at(-1)!);
    for (const order of orders(told)) {
      let known: KnownSubscription | null = null;
      for (const [status, seconds] of order) known = take(known, news(status, seconds), truth);
      expect([order, known?.status]).toEqual([order, truth.snapshot.status]);
      const firstOverdue = told.find(([status]) => status === "past_due");
      const heardOverdue = known?.status === "past_due" ? known.overdueSince : null;
      if (heardOverdue && firstOverdue)
        expect([order, heardOverdue]).toEqual([order, at(firstOverdue[1])]);
    }
  });
});

test("nothing comes after the end of a subscription, however it is dated", () => {
  const ended = { ...FIRST, status: "canceled" as const };
  expect(compareUpdate(ended, news("active", 99))).toBe("older");
  expect(compareUpdate(ended, news("active", 99, { at: at(100), basedOn: ended }))).toBe("older");
  expect(compareUpdate(FIRST, news("canceled", 1))).toBe("newer");
});

test("what happened in one second, or soon after the provider was asked, is in doubt", () => {
  expect(compareUpdate(FIRST, news("past_due", 10))).toBe("inconclusive");
  expect(compareUpdate(FIRST, news("past_due", 9))).toBe("older");
  expect(compareUpdate(FIRST, news("past_due", 11))).toBe("newer");
  const asked = { ...FIRST, askedAt: at(60) };
  expect(compareUpdate(asked, news("past_due", 61))).toBe("inconclusive");
  expect(compareUpdate(asked, news("past_due", 3600))).toBe("newer");
});

test("what the provider is asked holds when nothing was heard meanwhile, and is in doubt otherwise", () => {
  const answer = (knowing: KnownSubscription | null) => news("incomplete", 10, { at: at(60), basedOn });
  expect(compareUpdate(null, answer(null))).toBe("newer");
  expect(compareUpdate(FIRST, answer(FIRST))).toBe("newer");
  const asked = { ...FIRST, askedAt: at(50) };
  expect(compareUpdate(asked, answer(asked))).toBe("newer");
  // Two servers' clocks differ.
  const askedElsewhere = { ...FIRST, askedAt: at(70) };
  expect(compareUpdate(askedElsewhere, answer(askedElsewhere))).toBe("newer");

  expect(compareUpdate(FIRST, answer(null))).toBe("inconclusive");
  expect(compareUpdate(asked, answer(FIRST))).toBe("inconclusive");
  expect(compareUpdate({ ...FIRST, eventAt: at(11) }, answer(FIRST))).toBe("inconclusive");
});

test("an overdue payment keeps the plan for seven days from the first that was heard of it", () => {
  const overdue = { status: "past_due" as const, overdueSince: at(0) };
  expect(getGraceEnd(overdue)).toEqual(new Date(START + 7 * DAY_MS));
  expect(isEntitling(overdue, new Date(START + 7 * DAY_MS - 1))).toBe(true);
  expect(isEntitling(overdue, new Date(START + 7 * DAY_MS))).toBe(false);
  const since = (known: KnownSubscription, told: SubscriptionUpdate, verdict: "newer" | "older" = "newer") =>
    computeOverdue(known, told, verdict).overdueSince;
  const known = {
    ...FIRST,
    status: "past_due" as const,
    ...computeOverdue(FIRST, news("past_due", 50), "newer"),
  };
  expect(since(known, news("past_due", 70))).toEqual(at(50));
  expect(since(known, news("past_due", 40), "older")).toEqual(at(40));
  expect(since(known, news("active", 45), "older")).toEqual(at(50));
  expect(since(known, news("unpaid", 90))).toEqual(at(50));
  const nextPeriod = news("past_due", 100);
  nextPeriod.snapshot.periodEnd = at(60 * 24 * 3600);
  expect(since(known, nextPeriod)).toEqual(at(100));
});

test.each<SubscriptionStatus>(["active", "trialing"])(
  "once it is %s again, the next payment that fails in the same period has a grace of its own",
  (status) => {
    let known: KnownSubscription | null = null;
    for (const [told, seconds] of [
      ["past_due", 1],
      [status, 2],
      ["past_due", 1],
    ] as const) {
      known = take(known, news(told, seconds), news(status, 2));
      expect([told, known.status === "past_due"]).toEqual([told, known.overdueSince !== null]);
    }
    expect(take(known, news("past_due", 30), news("past_due", 30)).overdueSince).toEqual(at(30));
  },
);

test.each<[SubscriptionStatus, boolean]>([
  ["trialing", true],
  ["active", true],
  ["canceled", false],
  ["unpaid", false],
  ["incomplete", false],
  ["incomplete_expired", false],
  ["paused", false],
])("a subscription that is %s gives its plan: %s", (status, isGiven) => {
  expect(isEntitling({ status, overdueSince: at(0) }, at(1))).toBe(isGiven);
});

test("of several subscriptions the better plan counts, and what gives none does not", () => {
  const kept = (plan: "pro" | "team", isEntitling: boolean, seconds: number) => ({
    plan,
    isEntitling,
    status: isEntitling ? ("active" as const) : ("canceled" as const),
    eventAt: at(seconds),
  });
  const [pro, team, gone] = [kept("pro", true, 5), kept("team", true, 1), kept("team", false, 9)];
  expect(findPaidPlan([pro, team, gone])).toBe("team");
  expect(findPaidPlan([pro, gone])).toBe("pro");
  expect(findPaidPlan([gone])).toBeNull();
  expect(pickCurrentSubscription([pro, gone, team])).toBe(team);
  expect(pickCurrentSubscription([gone, pro])).toBe(pro);
  expect(pickCurrentSubscription([])).toBeNull();
});
