/** The organization's plan, its subscription, and the resources beyond the plan. For owners. */
import { describeOverLimit } from "../../protocol/over-limits.ts";
import {
  SELF_SERVICE_PLANS,
  BILLING_CYCLES,
  type BillingCycle,
  type SelfServicePlan,
  type Plan,
} from "../../protocol/plans.ts";
import type {
  Billing,
  CheckoutSession,
  OverLimit,
  PortalSession,
} from "../../protocol/schemas/billing.ts";
import { h, createTime, type Child } from "../ui/element.ts";
import {
  createBadge,
  createDetail,
  createRows,
  createSection,
  type Row,
  type Section,
} from "../ui/section.ts";
import { call } from "../session.ts";

/** How often, and how many times, the page checks whether a payment has been confirmed. */
const PAYMENT_CHECK_INTERVAL_MS = 2_000;
const PAYMENT_CHECKS_MAX = 60;

/** @param showAgain renders the other parts of the page that depend on the plan. */
export function createBillingSection(showAgain: () => Promise<void>): Section {
  let checks = 0;
  return createSection("Plan and billing", async (self) => {
    const billing = await call<Billing>("GET", "/billing");
    const { mode, overLimits, status } = billing;
    const content: Child[] = [
      createRows([buildPlanRow(billing)]),
      ...overLimits.map(createOverLimitNotice),
    ];
    if (hasJustPaid()) {
      if (status === "active" || status === "trialing") forgetPayment();
      else if ((checks += 1) <= PAYMENT_CHECKS_MAX) {
        content.unshift(
          h("p", { role: "note" }, "The payment is being confirmed. This can take a moment."),
        );
        // The provider notifies the server, usually within seconds.
        setTimeout(() => {
          if (self.element.isConnected) void self.reload().catch(() => {});
        }, PAYMENT_CHECK_INTERVAL_MS);
      }
    }
    if (mode === "none") return [...content, h("p", {}, "Plans can't be bought on this server.")];
    const portal = self.createButton("Invoices and payment", async () => {
      const { portal_url } = await call<PortalSession>("POST", "/billing/portal");
      location.assign(portal_url);
    });
    const isBought = status !== null && status !== "canceled" && status !== "incomplete_expired";
    const cancel = mode === "mock" && isBought ? [createCancelButton(self)] : [];
    return [
      ...content,
      createRows(buildOfferRows(billing, self)),
      h("div", { class: "actions" }, portal, ...cancel),
    ];
  });

  function createCancelButton(self: Section): HTMLElement {
    return self.createDialogButton("Cancel the plan", {
      title: "Cancel the plan now?",
      about: [
        h("p", {}, "Nothing is deleted. Features that only this plan includes stop working."),
      ],
      submit: "Cancel the plan now",
      kind: "danger",
      async act() {
        await call("POST", "/billing/cancel");
        await showAgain();
      },
    });
  }
}

/** The checkout redirects to this page with this fragment. */
function hasJustPaid(): boolean {
  return new URLSearchParams(location.hash.slice(1)).has("paid");
}

function forgetPayment(): void {
  history.replaceState(null, "", location.pathname + location.search);
}

function buildPlanRow({ plan, status, cycle, ...billing }: Billing): Row {
  const { currentPeriodEnd: end, graceEndsAt: grace, cancelAtPeriodEnd } = billing;
  const about: Child[] = [h("strong", {}, PLAN_NAMES[plan])];
  if (status !== null) about.push(createBadge(status.replaceAll("_", " ")));
  if (status === "active" && cycle !== null) {
    about.push(createDetail(cancelAtPeriodEnd ? "canceled" : `billed ${cycle}`));
    if (end !== null) {
      about.push(createDetail(cancelAtPeriodEnd ? "active until " : "renews on ", createTime(end)));
    }
  }
  if (grace !== null) {
    const text = "A payment did not go through. You keep the plan until ";
    about.push(h("p", { role: "alert" }, text, createTime(grace), "."));
  }
  return { about };
}

function buildOfferRows({ plan, cycle, status, prices }: Billing, self: Section): Row[] {
  const isCurrent = (offer: SelfServicePlan, each: BillingCycle) =>
    status !== null && plan === offer && cycle === each;
  return SELF_SERVICE_PLANS.map((offer) => ({
    about: [
      h("strong", {}, PLAN_NAMES[offer]),
      createDetail(`${prices[offer].monthly} USD a month, or ${prices[offer].yearly} USD a year`),
    ],
    actions: BILLING_CYCLES.filter((each) => !isCurrent(offer, each)).map((each) =>
      createBuyButton(self, offer, each),
    ),
  }));
}

function createBuyButton(self: Section, plan: SelfServicePlan, cycle: BillingCycle): HTMLElement {
  const label = `Pay ${cycle}`;
  const pressed = self.createButton(label, async () => {
    const purchase = { plan, billing_cycle: cycle };
    location.assign(
      (await call<CheckoutSession>("POST", "/billing/checkout-session", purchase)).checkout_url,
    );
  });
  pressed.setAttribute("aria-label", `${label} for ${PLAN_NAMES[plan]}`);
  return pressed;
}

const PLAN_NAMES: Record<Plan, string> = {
  free: "Free",
  pro: "Pro",
  team: "Team",
  enterprise: "Enterprise",
};

function createOverLimitNotice(overLimit: OverLimit): Child {
  return h("p", { role: "note" }, describeOverLimit(overLimit));
}
