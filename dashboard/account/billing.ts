/** What the organization's plan is, what is paid for it, and what it has beyond it. For owners. */
import {
  PAID_PLANS,
  BILLING_CYCLES,
  type BillingCycle,
  type PaidPlan,
} from "../../protocol/plans.ts";
import type {
  Billing,
  CheckoutSession,
  OverLimit,
  PortalSession,
} from "../../protocol/schemas/billing.ts";
import { h, time, type Child } from "../ui/element.ts";
import { badge, detail, rows, section, type Row, type Section } from "../ui/section.ts";
import { call } from "../session.ts";

/** How often, and how many times, the page of the account looks whether what was just paid for is there. */
const PAID_LOOK_INTERVAL_MS = 2_000;
const PAID_LOOKS_MAX = 60;

/** @param showAgain what else on the page depends on the plan. */
export function billingSection(showAgain: () => Promise<void>): Section {
  let looks = 0;
  return section("Plan and billing", async (self) => {
    const billing = await call<Billing>("GET", "/billing");
    const { mode, overLimits, status } = billing;
    const content: Child[] = [rows([planRow(billing)]), ...overLimits.map(overLimitNotice)];
    if (hasJustPaid()) {
      if (status === "active" || status === "trialing") forgetPayment();
      else if ((looks += 1) <= PAID_LOOKS_MAX) {
        content.unshift(h("p", { role: "note" }, "The payment is being confirmed. A moment …"));
        // The provider tells the server by itself, now or in a moment.
        setTimeout(() => {
          if (self.element.isConnected) void self.reload().catch(() => {});
        }, PAID_LOOK_INTERVAL_MS);
      }
    }
    if (mode === "none") return [...content, h("p", {}, "This server sells no plans.")];
    const portal = self.button("Invoices and payment", async () => {
      const { portal_url } = await call<PortalSession>("POST", "/billing/portal");
      location.assign(portal_url);
    });
    const isBought = status !== null && status !== "canceled" && status !== "incomplete_expired";
    const cancel = mode === "mock" && isBought ? [cancelButton(self)] : [];
    return [
      ...content,
      rows(offers(billing, self)),
      h("div", { class: "actions" }, portal, ...cancel),
    ];
  });

  function cancelButton(self: Section): HTMLElement {
    return self.asking("Cancel the plan", {
      title: "Cancel the plan at once?",
      about: [h("p", {}, "Nothing is deleted. What the plan alone gives stops working.")],
      submit: "Cancel the plan now",
      kind: "danger",
      async act() {
        await call("POST", "/billing/cancel");
        await showAgain();
      },
    });
  }
}

/** The checkout leads back to this address. */
function hasJustPaid(): boolean {
  return new URLSearchParams(location.hash.slice(1)).has("paid");
}

function forgetPayment(): void {
  history.replaceState(null, "", location.pathname + location.search);
}

function planRow({ plan, status, cycle, ...billing }: Billing): Row {
  const { currentPeriodEnd: end, graceEndsAt: grace, cancelAtPeriodEnd } = billing;
  const until = end === null ? [] : [` until `, time(end)];
  const about: Child[] = [h("strong", {}, NAMES[plan])];
  if (status !== null) about.push(badge(status.replaceAll("_", " ")));
  if (status === "active" && cycle !== null) {
    const words = cancelAtPeriodEnd ? "canceled: it stays" : `paid ${cycle}`;
    about.push(detail(words, ...until));
  }
  if (grace !== null) {
    const words = "A payment did not go through. The plan stays until ";
    about.push(h("p", { role: "alert" }, words, time(grace), "."));
  }
  return { about };
}

function offers({ plan, cycle, status, prices }: Billing, self: Section): Row[] {
  const isCurrent = (offer: PaidPlan, each: BillingCycle) =>
    status !== null && plan === offer && cycle === each;
  return PAID_PLANS.map((offer) => ({
    about: [
      h("strong", {}, NAMES[offer]),
      detail(`${prices[offer].monthly} USD a month, or ${prices[offer].yearly} USD a year`),
    ],
    actions: BILLING_CYCLES.filter((each) => !isCurrent(offer, each)).map((each) =>
      buyButton(self, offer, each),
    ),
  }));
}

function buyButton(self: Section, plan: PaidPlan, cycle: BillingCycle): HTMLElement {
  const label = `Pay ${cycle}`;
  const pressed = self.button(label, async () => {
    const asked = { plan, billing_cycle: cycle };
    location.assign(
      (await call<CheckoutSession>("POST", "/billing/checkout-session", asked)).checkout_url,
    );
  });
  pressed.setAttribute("aria-label", `${label} for ${NAMES[plan]}`);
  return pressed;
}

const NAMES = { free: "Free", pro: "Pro", team: "Team", enterprise: "Enterprise" };

function overLimitNotice({ what, count, allowed }: OverLimit): Child {
  return h("p", { role: "note" }, OVER_LIMIT[what](count, allowed));
}

const OVER_LIMIT: Record<OverLimit["what"], (count: number, allowed: number) => string> = {
  reserved_subdomains: (count, allowed) =>
    `Reserved subdomains: ${count}, where the plan has ${allowed}. You keep them, and can't reserve others.`,
  tunnel_passwords: (count) =>
    `Tunnels with a password that turn visitors away, because the plan has no passwords: ${count}.`,
  identity_gates: (count) =>
    `Tunnels with a sign-in that turn visitors away, because the plan has no sign-in: ${count}.`,
  master_keys: (count) => `Master keys that mint no tokens, because the plan has none: ${count}.`,
};
