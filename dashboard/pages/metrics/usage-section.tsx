/** The cost of a month's traffic, for the organization and for each of its tokens. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { OrganizationUsage } from "../../../protocol/schemas/metrics.ts";
import { getCurrentMonth, tokenUsageQuery } from "../../api/metrics.ts";
import { organizationsQuery } from "../../api/organization/organizations.ts";
import { useMe } from "../../app/session-state.ts";
import { useQueryParameters, useSetQueryParameters } from "../../app/query-parameters.ts";
import { QueryContent } from "../../ui/feedback/query-content.tsx";
import { Meter } from "../../ui/figures/meter.tsx";
import { LOCALE } from "../../ui/text/locale.ts";
import { formatBytes, formatCount, formatUsdCents } from "../../ui/numbers.ts";
import { Badge, Section } from "../../ui/section.tsx";
import { ShowMore } from "../../ui/show-more.tsx";
import { Table } from "../../ui/table.tsx";

/** Months before the current one that can be chosen. */
const MONTHS_MAX = 24;

/** How many tokens are shown at first, and added by each click. */
const PAGE_ROWS = 50;

const monthName = new Intl.DateTimeFormat(LOCALE, {
  month: "long",
  year: "numeric",
  timeZone: "UTC",
});

type TokenUsage = OrganizationUsage["tokens"][number];

export function UsageSection() {
  const setParameters = useSetQueryParameters();
  const months = useMonths();
  const { month: requested } = useQueryParameters();
  const month = months.find((one) => one === requested) ?? months[0]!;
  const usage = useQuery(tokenUsageQuery(month));
  const choice = (
    <select
      aria-label="Month"
      className="month"
      value={month}
      onChange={({ currentTarget: { value } }) =>
        setParameters({ month: value === months[0] ? "" : value })
      }
    >
      {months.map((one) => (
        <option key={one} value={one}>
          {monthName.format(Date.parse(`${one}-01`))}
        </option>
      ))}
    </select>
  );
  return (
    <Section title="Usage and cost" actions={choice}>
      <QueryContent query={usage} lines={5}>
        {(loaded) => (
          <>
            <Totals usage={loaded} />
            <TokenTable tokens={loaded.tokens} />
          </>
        )}
      </QueryContent>
    </Section>
  );
}

/** The months since the organization was created, newest first, as `2026-11`. Usage is counted by months of UTC. */
function useMonths(): string[] {
  const { active_org: organization } = useMe();
  const { data = [] } = useQuery(organizationsQuery);
  const current = getCurrentMonth();
  const created = data.find(({ id }) => id === organization.id)?.created_at.slice(0, 7) ?? current;
  const months = [current];
  while (months.at(-1)! > created && months.length <= MONTHS_MAX) {
    const before = new Date(Date.parse(`${months.at(-1)}-01`) - 1);
    months.push(before.toISOString().slice(0, 7));
  }
  return months;
}

function Totals({ usage }: { usage: OrganizationUsage }) {
  const figures = [
    ["Cost", formatUsdCents(usage.costUsdCents)],
    ["Requests", formatCount(usage.requests)],
    ["Traffic in both directions", formatBytes(usage.bytes)],
  ];
  return (
    <dl className="usage-totals">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt className="hint">{name}</dt>
          <dd className="number">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function TokenTable({ tokens }: { tokens: readonly TokenUsage[] }) {
  const [maxRows, setMaxRows] = useState(PAGE_ROWS);
  if (tokens.length === 0) return <p className="hint">The organization has no tokens yet.</p>;
  const rest = tokens.length - maxRows;
  return (
    <>
      <Table
        caption="Usage of each token, most traffic first"
        entries={sortByTraffic(tokens).slice(0, maxRows)}
        getKey={({ id }) => id}
        columns={[
          {
            title: "Token",
            render: ({ name, kind, revoked }) => (
              <div className="path-cell">
                <bdi>{name}</bdi> {kind === "master" && <Badge>master key</Badge>}
                {revoked && <Badge>revoked</Badge>}
              </div>
            ),
          },
          {
            title: "Requests",
            align: "end",
            isSecondary: true,
            render: ({ requests }) => formatCount(requests),
          },
          {
            title: "Traffic",
            align: "end",
            isSecondary: true,
            render: ({ bytes }) => formatBytes(bytes),
          },
          { title: "Cost", align: "end", render: (token) => formatUsdCents(token.costUsdCents) },
          { title: "Spent of the budget", render: (token) => <Budget token={token} /> },
        ]}
      />
      <ShowMore
        hiddenCount={rest}
        step={PAGE_ROWS}
        onShow={() => setMaxRows(maxRows + PAGE_ROWS)}
      />
    </>
  );
}

/** Tokens with the same traffic, such as unused ones, stay in their order. */
function sortByTraffic(tokens: readonly TokenUsage[]): TokenUsage[] {
  return tokens.toSorted((a, b) => b.bytes - a.bytes || b.requests - a.requests);
}

function Budget({ token }: { token: TokenUsage }) {
  const { name, spentUsdCents: spent, monthlyBudgetUsdCents: budget } = token;
  if (budget === null) return <span className="hint">no budget</span>;
  return (
    <div className="budget-cell">
      <Meter
        label={`Spent of the budget of ${name}`}
        isLabelHidden
        value={spent}
        max={budget}
        format={formatUsdCents}
      />
    </div>
  );
}
