/** The result of a subscription's updates is the same in every order of arrival. */
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

function update(
  status: SubscriptionStatus,
  seconds: number,
  fetched: SubscriptionUpdate["fetched"] = null,
): SubscriptionUpdate {
  const purchase = { plan: "pro", cycle: "monthly" } as const;
  const snapshot = { id: "s", customerId: "c", status, purchase, periodEnd: PERIOD_END };
  const dated = { occurredAt: at(seconds), failedAt: at(seconds) };
  return { snapshot: { ...snapshot, cancelAtPeriodEnd: false }, ...dated, fetched };
}

const FIRST: KnownSubscription = {
  status: "active",
  eventAt: at(10),
  askedAt: null,
  overdueSince: null,
  overduePeriodEnd: null,
};

/** Applies an update as the store does: after an inconclusive one it fetches `current` from the provider. */
function apply(
  known: KnownSubscription | null,
  received: SubscriptionUpdate,
  current: SubscriptionUpdate,
): KnownSubscription {
  const isInconclusive = compareUpdate(known, received) === "inconclusive";
  const applied = isInconclusive
    ? { ...received, snapshot: current.snapshot, fetched: { at: at(9e6), basedOn: known } }
    : received;
  const order = compareUpdate(known, applied);
  if (order === "inconclusive") throw new Error("the fetched update is inconclusive too");
  const overdue = computeOverdue(known, applied, order);
  if (known && order === "older") return { ...known, ...overdue };
  const askedAt = applied.fetched?.at ?? known?.askedAt ?? null;
  const { occurredAt } = applied;
  const eventAt = known && known.eventAt > occurredAt ? known.eventAt : occurredAt;
  return { status: applied.snapshot.status, eventAt, askedAt, ...overdue };
}

function* orders<Item>(items: Item[]): Generator<Item[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries()) {
    for (const rest of orders(items.toSpliced(index, 1))) yield [item, ...rest];
  }
}

describe("the newest update wins, in every order of arrival", () => {
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
  ])("%s", (_case, received) => {
    const current = update(...received.at(-1)!);
    for (const order of orders(received)) {
      let known: KnownSubscription | null = null;
      for (const [status, seconds] of order) known = apply(known, update(status, seconds), current);
      expect([order, known?.status]).toEqual([order, current.snapshot.status]);
      const firstOverdue = received.find(([status]) => status === "past_due");
      const knownOverdue = known?.status === "past_due" ? known.overdueSince : null;
      if (knownOverdue && firstOverdue)
        expect([order, knownOverdue]).toEqual([order, at(firstOverdue[1])]);
    }
  });
});

test("no update follows the end of a subscription, however it is dated", () => {
  const ended = { ...FIRST, status: "canceled" as const };
  expect(compareUpdate(ended, update("active", 99))).toBe("older");
  expect(compareUpdate(ended, update("active", 99, { at: at(100), basedOn: ended }))).toBe("older");
  expect(compareUpdate(FIRST, update("canceled", 1))).toBe("newer");
});

test("updates of the same second, or soon after a fetch, are inconclusive", () => {
  expect(compareUpdate(FIRST, update("past_due", 10))).toBe("inconclusive");
  expect(compareUpdate(FIRST, update("past_due", 9))).toBe("older");
  expect(compareUpdate(FIRST, update("past_due", 11))).toBe("newer");
  const fetchedBefore = { ...FIRST, askedAt: at(60) };
  expect(compareUpdate(fetchedBefore, update("past_due", 61))).toBe("inconclusive");
  expect(compareUpdate(fetchedBefore, update("past_due", 3600))).toBe("newer");
});

test("a fetched update counts when no other arrived meanwhile, and is inconclusive otherwise", () => {
  const answer = (basedOn: KnownSubscription | null) =>
    update("incomplete", 10, { at: at(60), basedOn });
  expect(compareUpdate(null, answer(null))).toBe("newer");
  expect(compareUpdate(FIRST, answer(FIRST))).toBe("newer");
  const fetchedBefore = { ...FIRST, askedAt: at(50) };
  expect(compareUpdate(fetchedBefore, answer(fetchedBefore))).toBe("newer");
  // Two servers' clocks differ.
  const askedElsewhere = { ...FIRST, askedAt: at(70) };
  expect(compareUpdate(askedElsewhere, answer(askedElsewhere))).toBe("newer");

  expect(compareUpdate(FIRST, answer(null))).toBe("inconclusive");
  expect(compareUpdate(fetchedBefore, answer(FIRST))).toBe("inconclusive");
  expect(compareUpdate({ ...FIRST, eventAt: at(11) }, answer(FIRST))).toBe("inconclusive");
});

test("an overdue payment keeps the plan for seven days from the first failure", () => {
  const overdue = { status: "past_due" as const, overdueSince: at(0) };
  expect(getGraceEnd(overdue)).toEqual(new Date(START + 7 * DAY_MS));
  expect(isEntitling(overdue, new Date(START + 7 * DAY_MS - 1))).toBe(true);
  expect(isEntitling(overdue, new Date(START + 7 * DAY_MS))).toBe(false);
  const since = (
    known: KnownSubscription,
    received: SubscriptionUpdate,
    verdict: "newer" | "older" = "newer",
  ) => computeOverdue(known, received, verdict).overdueSince;
  const known = {
    ...FIRST,
    status: "past_due" as const,
    ...computeOverdue(FIRST, update("past_due", 50), "newer"),
  };
  expect(since(known, update("past_due", 70))).toEqual(at(50));
  expect(since(known, update("past_due", 40), "older")).toEqual(at(40));
  expect(since(known, update("active", 45), "older")).toEqual(at(50));
  expect(since(known, update("unpaid", 90))).toEqual(at(50));
  const nextPeriod = update("past_due", 100);
  nextPeriod.snapshot.periodEnd = at(60 * 24 * 3600);
  expect(since(known, nextPeriod)).toEqual(at(100));
});

test.each<SubscriptionStatus>(["active", "trialing"])(
  "once it is %s again, the next payment that fails in the same period has a grace of its own",
  (status) => {
    let known: KnownSubscription | null = null;
    for (const [received, seconds] of [
      ["past_due", 1],
      [status, 2],
      ["past_due", 1],
    ] as const) {
      known = apply(known, update(received, seconds), update(status, 2));
      expect([received, known.status === "past_due"]).toEqual([
        received,
        known.overdueSince !== null,
      ]);
    }
    expect(apply(known, update("past_due", 30), update("past_due", 30)).overdueSince).toEqual(
      at(30),
    );
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
])("a subscription that is %s gives its plan: %s", (status, hasPlan) => {
  expect(isEntitling({ status, overdueSince: at(0) }, at(1))).toBe(hasPlan);
});

test("of several subscriptions the better plan counts, and those without a plan do not", () => {
  const newCandidate = (plan: "pro" | "team", isEntitling: boolean, seconds: number) => ({
    plan,
    isEntitling,
    status: isEntitling ? ("active" as const) : ("canceled" as const),
    eventAt: at(seconds),
  });
  const [pro, team, notEntitling] = [
    newCandidate("pro", true, 5),
    newCandidate("team", true, 1),
    newCandidate("team", false, 9),
  ];
  expect(findPaidPlan([pro, team, notEntitling])).toBe("team");
  expect(findPaidPlan([pro, notEntitling])).toBe("pro");
  expect(findPaidPlan([notEntitling])).toBeNull();
  expect(pickCurrentSubscription([pro, notEntitling, team])).toBe(team);
  expect(pickCurrentSubscription([notEntitling, pro])).toBe(pro);
  expect(pickCurrentSubscription([])).toBeNull();
});
