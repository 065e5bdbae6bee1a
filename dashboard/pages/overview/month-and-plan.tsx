/** The usage of the organization this month, and its share of the plan's limits. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { DAY_MS } from "../../../shared/time.ts";
import { getCurrentMonth, usageQuery } from "../../api/metrics.ts";
import { organizationsQuery } from "../../api/organization/organizations.ts";
import { useHasRole } from "../../app/roles.ts";
import { useMe } from "../../app/session-state.ts";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Meter } from "../../ui/figures/meter.tsx";
import { formatBytes, formatCount, formatDaysOrHours, formatUsdCents } from "../../ui/numbers.ts";
import { Badge, Section } from "../../ui/section.tsx";
import { domainsCountQuery, membersCountQuery, namesCountQuery } from "./resource-counts.ts";

export function MonthAndPlan() {
  return (
    <div className="usage-grid">
      <MonthSection />
      <PlanSection />
    </div>
  );
}

function MonthSection() {
  const { id } = useMe().active_org;
  const usage = useQuery(usageQuery(getCurrentMonth()));
  const { data: organizations = [] } = useQuery(organizationsQuery);
  const budget = organizations.find((one) => one.id === id)?.monthly_budget_usd_cents ?? null;
  return (
    <Section title="This month" actions={<Link to="/metrics">By token</Link>}>
      <QueryContent query={usage} lines={3}>
        {({ costUsdCents, requests, bytes }) => (
          <>
            <Meter
              label={budget === null ? "Cost of the traffic" : "Spent of the budget"}
              value={costUsdCents}
              max={budget}
              format={formatUsdCents}
            />
            <Meter label="Requests" value={requests} max={null} format={formatCount} />
            <Meter
              label="Traffic in both directions"
              value={bytes}
              max={null}
              format={formatBytes}
            />
          </>
        )}
      </QueryContent>
    </Section>
  );
}

function PlanSection() {
  const isOwner = useHasRole("owner");
  const { entitlements, active_org: organization } = useMe();
  const { plan, max_reserved_subdomains: maxNames, inspector_retention_days: days } = entitlements;
  const title = <Badge>{plan}</Badge>;
  const action = isOwner ? <Link to="/billing">{title}</Link> : title;
  return (
    <Section title="Plan" actions={action}>
      <CountMeter label="Reserved names" query={useQuery(namesCountQuery)} max={maxNames} />
      <CountMeter label="Custom domains" query={useQuery(domainsCountQuery)} max={null} />
      <CountMeter label="Members" query={useQuery(membersCountQuery(organization.id))} max={null} />
      <Meter
        label="Requests are stored for"
        value={days * DAY_MS}
        max={null}
        format={formatDaysOrHours}
      />
    </Section>
  );
}

interface CountMeterProps {
  label: string;
  query: UseQueryResult<number>;
  max: number | null;
}

function CountMeter({ label, query, max }: CountMeterProps) {
  return (
    <QueryContent query={query} lines={1}>
      {(count) => <Meter label={label} value={count} max={max} format={formatCount} />}
    </QueryContent>
  );
}
