/** The usage of the organization this month, and its share of the plan's limits. */
import { useQuery } from "@tanstack/react-query";
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
  const names = useQuery(namesCountQuery);
  const domains = useQuery(domainsCountQuery);
  const members = useQuery(membersCountQuery(organization.id));
  const title = <Badge>{plan}</Badge>;
  const action = isOwner ? <Link to="/billing">{title}</Link> : title;
  return (
    <Section title="Plan" actions={action}>
      <QueryContent query={names} lines={3}>
        {(count) => (
          <Meter label="Reserved names" value={count} max={maxNames} format={formatCount} />
        )}
      </QueryContent>
      <Meter label="Custom domains" value={domains.data ?? 0} max={null} format={formatCount} />
      <Meter label="Members" value={members.data ?? 1} max={null} format={formatCount} />
      <Meter
        label="Requests are stored for"
        value={days * DAY_MS}
        max={null}
        format={formatDaysOrHours}
      />
    </Section>
  );
}
