/** The decisions that a policy would have made about the captured requests of the tunnel. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type {
  DryRunExample,
  PolicyDryRun,
} from "../../../../protocol/schemas/access/policy-dry-run.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { Button } from "../../../ui/button.tsx";
import { EmptyState } from "../../../ui/feedback/empty-state.tsx";
import { QueryContent } from "../../../ui/feedback/query-content.tsx";
import { Fact, Facts } from "../../../ui/facts.tsx";
import { formatCount } from "../../../ui/numbers.ts";
import { Badge, Section } from "../../../ui/section.tsx";
import { Table, type Column } from "../../../ui/table.tsx";
import { RelativeTime } from "../../../ui/time.tsx";
import { dryRunQuery } from "./policy-api.ts";
import { describeAction, findActionKind } from "./action-kinds.ts";
import { parsePolicy } from "./policy-document.ts";

/** The rest is shown on demand. */
const EXAMPLES_SHOWN = 10;

interface DryRunSectionProps {
  tunnel: Tunnel;
  /** The policy that was tested, in JSON. */
  text: string;
  /** Whether the policy was edited after the test. */
  isOutdated: boolean;
}

export function DryRunSection({ tunnel, text, isOutdated }: DryRunSectionProps) {
  const query = useQuery(dryRunQuery(tunnel.id, text));
  return (
    <Section title="Test on recent requests">
      <div aria-live="polite">
        {isOutdated && (
          <p className="notice warning">
            The policy has changed since this test. Test it again to see the difference.
          </p>
        )}
        <QueryContent query={query} lines={8}>
          {(result) =>
            result.evaluated === 0 ? (
              <NoRequests tunnel={tunnel} />
            ) : (
              <Result result={result} text={text} />
            )
          }
        </QueryContent>
      </div>
    </Section>
  );
}

function NoRequests({ tunnel: { publicUrl } }: { tunnel: Tunnel }) {
  return (
    <EmptyState title="There are no captured requests to test on" commands={[`curl ${publicUrl}`]}>
      <p>Send one to the tunnel. The result appears here.</p>
    </EmptyState>
  );
}

function Result({ result, text }: { result: PolicyDryRun; text: string }) {
  const actions = parsePolicy(text).policy?.actions ?? [];
  const rules = result.rules.map((rule, index) => ({
    ...rule,
    index,
    title: describeAction(actions[index] ?? rule),
  }));
  return (
    <>
      <DryRunCounts result={result} />
      {rules.length > 0 && (
        <Table
          caption="Results by rule"
          columns={RULE_COLUMNS}
          entries={rules}
          getKey={({ index }) => index}
        />
      )}
      {result.examples.length > 0 && <Examples examples={result.examples} />}
    </>
  );
}

function Examples({ examples }: { examples: readonly DryRunExample[] }) {
  const [isShowingAll, setShowingAll] = useState(false);
  const shown = isShowingAll ? examples : examples.slice(0, EXAMPLES_SHOWN);
  return (
    <>
      <h3 className="policy-examples">Requests</h3>
      <Table
        caption="Requests that the policy would refuse or treat differently"
        columns={EXAMPLE_COLUMNS}
        entries={shown}
        getKey={({ id }) => id}
      />
      {shown.length < examples.length && (
        <Button kind="quiet" onClick={() => setShowingAll(true)}>
          Show all {formatCount(examples.length)}
        </Button>
      )}
    </>
  );
}

/** How many requests would have ended in which way. */
export function DryRunCounts({ result }: { result: PolicyDryRun }) {
  const { evaluated, allowed, refused, changed, unknown, since } = result;
  return (
    <div className="policy-counts">
      <p>
        Of the last {formatCount(evaluated)} requests,{" "}
        <strong>{changed === 0 ? "none" : formatCount(changed)}</strong> would have ended
        differently.
        {since !== null && (
          <span className="hint">
            {" "}
            Oldest: <RelativeTime timestamp={since} />.
          </span>
        )}
      </p>
      <Facts>
        <Fact name="Forwarded">{formatCount(allowed)}</Fact>
        <Fact name="Refused">{formatCount(refused)}</Fact>
        <Fact name="Unknown">{formatCount(unknown)}</Fact>
      </Facts>
    </div>
  );
}

interface RuleResult {
  index: number;
  kind: string;
  title: string;
  matched: number;
  unknown: number;
}

const RULE_COLUMNS: readonly Column<RuleResult>[] = [
  {
    title: "Rule",
    render: ({ index, title }) => (
      <>
        <span className="hint">{index + 1}</span> <bdi>{title}</bdi>
      </>
    ),
  },
  {
    title: "Requests",
    align: "end",
    render: ({ kind, matched }) =>
      `${formatCount(matched)} ${findActionKind(kind)?.effect ?? "refused"}`,
  },
  { title: "Unknown", align: "end", render: ({ unknown }) => formatCount(unknown) },
];

const EXAMPLE_COLUMNS: readonly Column<DryRunExample>[] = [
  {
    title: "Request",
    render: ({ id, method, path }) => (
      <Link to="/requests/$id" params={{ id }} className="policy-request">
        <bdi>{method}</bdi> <bdi>{path}</bdi>
      </Link>
    ),
  },
  { title: "Original status", align: "end", render: ({ status }) => status ?? "–" },
  { title: "With this policy", render: (example) => <Outcome example={example} /> },
  {
    title: "Visitor",
    render: ({ client_ip: address }) => <bdi className="policy-cell">{address}</bdi>,
  },
  {
    title: "Time",
    render: ({ timestamp }) => (
      <span className="policy-cell">
        <RelativeTime timestamp={timestamp} />
      </span>
    ),
  },
];

function Outcome({ example }: { example: DryRunExample }) {
  const { outcome, rule, new_status: status, reason } = example;
  switch (outcome) {
    case "allowed":
      return <Badge tone="good">forwarded</Badge>;
    case "refused":
      return (
        <>
          <Badge tone="bad">{status}</Badge>
          {rule !== null && <span className="hint">rule {rule + 1}</span>}
        </>
      );
    case "unknown":
      return (
        <>
          <Badge tone="warning">unknown</Badge>
          <span className="hint">{reason === "token" ? TOKEN_REASON : OTHER_CHECK_REASON}</span>
        </>
      );
  }
}

const TOKEN_REASON = "the token was not captured";
const OTHER_CHECK_REASON = "another check refused it";
