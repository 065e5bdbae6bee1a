/** The contents of all plans, side by side. Where plans can't be bought, only the plan of the organization. */
import { PLANS, type Plan } from "../../../protocol/plans.ts";
import type { PlanLimits } from "../../../protocol/schemas/accounts/entitlements.ts";
import type { Billing } from "../../../protocol/schemas/billing.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { useMe } from "../../app/session-state.ts";
import { formatCount, formatDaysOrHours } from "../../ui/numbers.ts";
import { Badge, Section } from "../../ui/section.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { PLAN_NAMES } from "./plan-names.ts";

interface Limit {
  title: string;
  format: (limits: PlanLimits) => string;
}

const NOT_INCLUDED = "–";

const LIMITS: readonly Limit[] = [
  {
    title: "Lifetime of a tunnel",
    format: ({ tunnel_ttl_seconds: seconds }) =>
      seconds === null ? "No expiry" : formatDaysOrHours(seconds * 1000),
  },
  {
    title: "Reserved names",
    format: ({ max_reserved_subdomains: max }) => (max === null ? "Unlimited" : formatCount(max)),
  },
  {
    title: "Requests and deliveries are stored for",
    format: ({ inspector_retention_days: days }) => formatDaysOrHours(days * DAY_MS),
  },
  { title: "Passwords for tunnels", format: (limits) => formatFeature(limits.tunnel_password) },
  { title: "Sign-in of visitors", format: (limits) => formatFeature(limits.edge_identity_gate) },
  { title: "Master keys", format: (limits) => formatFeature(limits.master_keys) },
];

function formatFeature(isIncluded: boolean): string {
  return isIncluded ? "Yes" : NOT_INCLUDED;
}

export function PlanComparison({ billing: { mode, plan: current, limits } }: { billing: Billing }) {
  const plans = mode === "none" ? [current] : PLANS;
  const title = mode === "none" ? "What your plan includes" : "What the plans include";
  const toColumn = (plan: Plan): Column<Limit> => ({
    title: PLAN_NAMES[plan],
    align: "end",
    note: plan === current && <Badge tone="good">your plan</Badge>,
    render: ({ format }) => format(limits[plan]),
  });
  return (
    <Section title={title}>
      <Table
        caption={title}
        columns={[
          { title: "Limit", isTitleHidden: true, render: ({ title }) => title },
          ...plans.map(toColumn),
        ]}
        entries={LIMITS}
        getKey={({ title }) => title}
      />
      <TrialNote included={limits[current]} />
    </Section>
  );
}

function TrialNote({ included }: { included: PlanLimits }) {
  const { trial_ends_at: end, tunnel_password: hasPasswords } = useMe().entitlements;
  if (end === null || included.tunnel_password || !hasPasswords) return null;
  return (
    <p className="hint">
      Your trial also includes passwords for tunnels, until <ExactTime timestamp={end} />.
    </p>
  );
}
