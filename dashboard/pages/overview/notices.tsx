/** Notices that ask the user to act: about the approval, the security of the account, payments and budgets. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { describeOverLimit } from "../../../protocol/over-limits.ts";
import { billingQuery } from "../../api/organization/billing.ts";
import { getCurrentMonth, usageQuery } from "../../api/metrics.ts";
import { organizationsQuery } from "../../api/organization/organizations.ts";
import { useHasRole } from "../../app/roles.ts";
import { useMe } from "../../app/session-state.ts";
import { formatPercent, formatUsdCents } from "../../ui/numbers.ts";
import { Button } from "../../ui/button.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { useHidden } from "./use-hidden.ts";

/** A notice warns when this share of the budget is spent. */
const BUDGET_WARNING_RATIO = 0.8;

/** Until this is false the page shows nothing else, because a notice that appears later would move it. */
export function useAreNoticesLoading(): boolean {
  const isOwner = useHasRole("owner");
  const billing = useQuery({ ...billingQuery, enabled: isOwner });
  const organizations = useQuery(organizationsQuery);
  const usage = useQuery(usageQuery(getCurrentMonth()));
  return [billing, organizations, usage].some(isFirstLoad);
}

/** A notice whose query has failed retries it. If it were removed meanwhile, it would start over each time it is shown. */
function isFirstLoad({ isLoading, isFetched }: { isLoading: boolean; isFetched: boolean }) {
  return isLoading && !isFetched;
}

export function Notices() {
  const isOwner = useHasRole("owner");
  return (
    <>
      <ApprovalNotice />
      <SecondFactorNotice />
      {isOwner && <BillingNotices />}
      <BudgetNotice />
    </>
  );
}

function Notice({ tone, children }: { tone: "warning" | "bad"; children: ReactNode }) {
  return (
    <div className={`notice ${tone}`} role="note">
      <p>{children}</p>
    </div>
  );
}

function ApprovalNotice() {
  const { approval_status: status } = useMe().active_org;
  if (status === "approved") return null;
  return (
    <Notice tone="warning">
      {status === "pending"
        ? "This organization is waiting for approval, and can't open tunnels until it is approved."
        : "This organization was not approved, so it can't open tunnels."}
    </Notice>
  );
}

function SecondFactorNotice() {
  const me = useMe();
  const isAdmin = useHasRole("admin");
  const { isHidden, hide } = useHidden(`underpass-two-factor-notice-hidden ${me.user.id}`);
  if (me.mfa_removable_at !== null) {
    return (
      <Notice tone="bad">
        Someone asked to remove your two-factor authentication. If it was not you,{" "}
        <Link to="/me">stop the removal</Link>.
      </Notice>
    );
  }
  if (isHidden || me.mfa_enabled || !me.has_password || !isAdmin) return null;
  return (
    <Notice tone="warning">
      Your account is protected by a password only.{" "}
      <Link to="/me">Set up two-factor authentication</Link>
      {" · "}
      <Button
        kind="link"
        aria-label="Hide this notice"
        onClick={() => hide("The notice is hidden.")}
      >
        Hide
      </Button>
    </Notice>
  );
}

function BillingNotices() {
  const { data: billing } = useQuery(billingQuery);
  if (!billing) return null;
  const { mode, graceEndsAt: grace, overLimits } = billing;
  return (
    <>
      {grace !== null && (
        <Notice tone="bad">
          A payment did not go through. The plan ends on <ExactTime timestamp={grace} />.{" "}
          <Link to="/billing">Update the payment</Link>
        </Notice>
      )}
      {overLimits.map((limit) => (
        <Notice key={limit.what} tone="warning">
          {describeOverLimit(limit)} {mode !== "none" && <Link to="/billing">See the plans</Link>}
        </Notice>
      ))}
    </>
  );
}

function BudgetNotice() {
  const { id } = useMe().active_org;
  const { data: organizations = [] } = useQuery(organizationsQuery);
  const { data: usage } = useQuery(usageQuery(getCurrentMonth()));
  const budget = organizations.find((one) => one.id === id)?.monthly_budget_usd_cents ?? null;
  const spent = usage?.costUsdCents;
  if (budget === null || spent === undefined) return null;
  if (spent >= budget) {
    return (
      <Notice tone="bad">
        This month's budget of {formatUsdCents(budget)} is used up: agents can't connect until it is
        raised or the month ends. <Link to="/metrics">See the usage</Link>
      </Notice>
    );
  }
  if (spent < budget * BUDGET_WARNING_RATIO) return null;
  return (
    <Notice tone="warning">
      {formatPercent(spent / budget)} of this month's budget of {formatUsdCents(budget)} is used.{" "}
      <Link to="/metrics">See the usage</Link>
    </Notice>
  );
}
