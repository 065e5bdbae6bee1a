/** /billing: the organization's plan, its subscription, the resources beyond the plan, and the other plans. For owners. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { describeOverLimit } from "../../../protocol/over-limits.ts";
import {
  BILLING_CYCLES,
  PLANS,
  SELF_SERVICE_PLANS,
  type BillingCycle,
  type SelfServicePlan,
} from "../../../protocol/plans.ts";
import type { Billing, CheckoutSession, PortalSession } from "../../../protocol/schemas/billing.ts";
import { billingQuery } from "../../api/organization/billing.ts";
import { call } from "../../api/session.ts";
import { formatRole, useHasRole } from "../../app/roles.ts";
import { loadMe, useMe } from "../../app/session-state.ts";
import { ActionButton } from "../../ui/button.tsx";
import { ConfirmButton } from "../../ui/forms/dialog.tsx";
import { PageFrame } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/feedback/empty-state.tsx";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { formatUsd } from "../../ui/numbers.ts";
import { Badge, Detail, Row, Rows, Section } from "../../ui/section.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { PlanComparison } from "./plan-comparison.tsx";
import { PLAN_NAMES } from "./plan-names.ts";

/** The payment provider reports a payment, or a change on its own pages, a moment after the user has returned to this page. */
const BILLING_RELOAD_MS = 5_000;
const PAYMENT_CHECK_INTERVAL_MS = 2_000;

export function Page() {
  const { active_org: organization } = useMe();
  return (
    <PageFrame title="Billing" about={organization.name}>
      {useHasRole("owner") ? (
        <OwnersBilling />
      ) : (
        <EmptyState title="Only owners see the billing">
          <p>
            You are {formatRole(organization.role)} of <bdi>{organization.name}</bdi>. An owner can
            change your role.
          </p>
        </EmptyState>
      )}
    </PageFrame>
  );
}

function OwnersBilling() {
  const isPaying = usePaymentInProgress();
  const billing = useQuery({
    ...billingQuery,
    refetchInterval: isPaying ? PAYMENT_CHECK_INTERVAL_MS : BILLING_RELOAD_MS,
  });
  return (
    <>
      <Section title="Plan and billing">
        <QueryContent query={billing}>
          {(loaded) => (
            <>
              {isPaying && !isConfirmed(loaded) && (
                <p role="note">The payment is being confirmed. This can take a moment.</p>
              )}
              <BillingContent billing={loaded} />
            </>
          )}
        </QueryContent>
      </Section>
      {billing.data && <PlanComparison billing={billing.data} />}
    </>
  );
}

function isConfirmed({ status }: Billing): boolean {
  return status === "active" || status === "trialing";
}

/** The checkout redirects to this page with the fragment `paid`, until the provider has notified the server. */
function usePaymentInProgress(): boolean {
  const { data } = useQuery(billingQuery);
  const [hasPaid] = useState(() => new URLSearchParams(location.hash.slice(1)).has("paid"));
  const isDone = data !== undefined && isConfirmed(data);
  useEffect(() => {
    if (!hasPaid || !isDone) return;
    history.replaceState(history.state, "", location.pathname + location.search);
    void loadMe();
  }, [hasPaid, isDone]);
  return hasPaid && !isDone;
}

function BillingContent({ billing }: { billing: Billing }) {
  const { mode, overLimits } = billing;
  return (
    <>
      <Rows>
        <PlanRow billing={billing} />
      </Rows>
      {overLimits.map((overLimit) => {
        const text = describeOverLimit(overLimit);
        return (
          <p key={text} role="note">
            {text}
          </p>
        );
      })}
      {mode === "none" ? (
        <p>Billing is turned off on this server. Its operator sets the plan.</p>
      ) : (
        <>
          <Rows>
            {SELF_SERVICE_PLANS.map((plan) => (
              <OfferRow key={plan} plan={plan} billing={billing} />
            ))}
          </Rows>
          <div className="actions">
            <ActionButton
              action={async () => {
                const { portal_url } = await call<PortalSession>("POST", "/billing/portal");
                location.assign(portal_url);
              }}
            >
              Invoices and payment
            </ActionButton>
            {mode === "mock" && hasSubscription(billing) && <CancelButton />}
          </div>
        </>
      )}
    </>
  );
}

function hasSubscription({ status }: Billing): boolean {
  return status !== null && status !== "canceled" && status !== "incomplete_expired";
}

function PlanRow({ billing }: { billing: Billing }) {
  const { plan, status, cycle, currentPeriodEnd: end, graceEndsAt: grace } = billing;
  const isCanceled = billing.cancelAtPeriodEnd;
  return (
    <Row>
      <strong>{PLAN_NAMES[plan]}</strong>
      <Badge tone="good">your plan</Badge>
      {status !== null && <Badge>{status.replaceAll("_", " ")}</Badge>}
      {status === "active" && cycle !== null && (
        <>
          <Detail>{isCanceled ? "canceled" : `billed ${cycle}`}</Detail>
          {end !== null && (
            <Detail>
              {isCanceled ? "active until " : "renews on "}
              <ExactTime timestamp={end} />
            </Detail>
          )}
        </>
      )}
      {grace !== null && (
        <p role="alert">
          A payment did not go through. You keep the plan until <ExactTime timestamp={grace} />.
        </p>
      )}
    </Row>
  );
}

interface OfferRowProps {
  plan: SelfServicePlan;
  billing: Billing;
}

/**
 * Whether the organization can buy the plan. Without a subscription, its own plan includes the smaller ones. Only the payment
 * provider changes a subscription to a smaller plan.
 */
function isForSale(plan: SelfServicePlan, billing: Billing): boolean {
  const step = PLANS.indexOf(plan) - PLANS.indexOf(billing.plan);
  if (!hasSubscription(billing)) return step > 0;
  return step >= 0 || billing.mode === "payments";
}

function OfferRow({ plan, billing }: OfferRowProps) {
  const { monthly, yearly } = billing.prices[plan];
  const isCurrent = (cycle: BillingCycle) =>
    billing.status !== null && billing.plan === plan && billing.cycle === cycle;
  const buttons = BILLING_CYCLES.filter((cycle) => !isCurrent(cycle)).map((cycle) => (
    <ActionButton
      key={cycle}
      aria-label={`Pay ${cycle} for ${PLAN_NAMES[plan]}`}
      action={async () => {
        const purchase = { plan, billing_cycle: cycle };
        const path = "/billing/checkout-session";
        location.assign((await call<CheckoutSession>("POST", path, purchase)).checkout_url);
      }}
    >
      Pay {cycle}
    </ActionButton>
  ));
  if (!isForSale(plan, billing)) {
    return (
      <Row>
        <strong>{PLAN_NAMES[plan]}</strong>
        <Detail>Your plan includes it.</Detail>
      </Row>
    );
  }
  return (
    <Row actions={buttons}>
      <strong>{PLAN_NAMES[plan]}</strong>
      <Detail>
        {formatUsd(monthly)} a month, or {formatUsd(yearly)} a year
      </Detail>
    </Row>
  );
}

function CancelButton() {
  const billing = useQuery(billingQuery);
  return (
    <ConfirmButton
      button={{ children: "Cancel the plan" }}
      title="Cancel the plan now?"
      submit="Cancel the plan"
      cancel="Keep the plan"
      onSubmit={async () => {
        await call("POST", "/billing/cancel");
        await billing.refetch();
        await loadMe();
      }}
    >
      <p>Nothing is deleted. Features that only this plan includes stop working.</p>
    </ConfirmButton>
  );
}
