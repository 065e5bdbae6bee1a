/** How the response to a replay differs from the captured one. */
import { Link } from "@tanstack/react-router";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import type {
  Comparison,
  ReplayResult,
} from "../../../../../protocol/schemas/inspector/replays.ts";
import { Button } from "../../../../ui/button.tsx";
import { formatBytes, formatMs } from "../../../../ui/numbers.ts";
import { Badge, Section } from "../../../../ui/section.tsx";
import type { ValueChange } from "../../decode/compare-requests.ts";
import { ChangeTable } from "../comparison/change-table.tsx";
import { formatStatus } from "../explanations.ts";

interface ReplayComparisonProps {
  replay: ReplayResult;
  request: CaptureDetail;
  onClose: () => void;
}

export function ReplayComparison({ replay, request, onClose }: ReplayComparisonProps) {
  const { comparison, id } = replay;
  const changes = listChanges(comparison);
  return (
    <Section title="Replay" actions={<Button onClick={onClose}>Close</Button>}>
      <div role="status" className="replay-outcome">
        {comparison.same ? (
          <Badge tone="good">same response</Badge>
        ) : (
          <Badge tone="warning">different response</Badge>
        )}
        <span>
          {formatOptionalStatus(comparison.status.replayed)}
          {comparison.latency_ms.replayed !== null &&
            ` after ${formatMs(comparison.latency_ms.replayed)}`}
          {comparison.latency_ms.original !== null &&
            `, originally ${formatMs(comparison.latency_ms.original)}`}
          .
        </span>
      </div>
      {changes.length > 0 && (
        <ChangeTable caption="Differences between the responses" changes={changes} />
      )}
      {comparison.headers.cut && (
        <p className="hint">
          At least one response was stored without its headers, so they are not compared.
        </p>
      )}
      {comparison.body.more_differences && <p className="hint">There are more differences.</p>}
      {comparison.body.cut && (
        <p className="hint">
          Not all bytes of both bodies are stored: only the stored part is compared.
        </p>
      )}
      <div className="links">
        <Link to="/requests/$id" params={{ id }}>
          Open the new request
        </Link>
        <Link to="/requests/$id" params={{ id: request.id }} search={{ compare: id }}>
          Compare everything
        </Link>
      </div>
    </Section>
  );
}

function formatOptionalStatus(status: number | null): string {
  return status === null ? "No response" : formatStatus(status);
}

function listChanges({ status, headers, body }: Comparison): ValueChange[] {
  const changes: ValueChange[] = [];
  if (!status.same) {
    changes.push({
      name: "Status",
      before: formatOptionalStatus(status.original),
      after: formatOptionalStatus(status.replayed),
    });
  }
  for (const [name, { original, replayed }] of Object.entries(headers.changed)) {
    changes.push({ name, before: original, after: replayed });
  }
  for (const [name, before] of Object.entries(headers.removed)) {
    changes.push({ name, before, after: null });
  }
  for (const [name, after] of Object.entries(headers.added)) {
    changes.push({ name, before: null, after });
  }
  for (const { path, original, replayed } of body.differences ?? []) {
    changes.push({
      name: `body ${path === "" ? "(whole)" : path}`,
      before: original,
      after: replayed,
    });
  }
  if (!body.same && (body.differences ?? []).length === 0) {
    const at =
      body.first_difference === null ? "" : `, first difference at byte ${body.first_difference}`;
    changes.push({
      name: "body",
      before: formatBytes(body.size.original),
      after: formatBytes(body.size.replayed) + at,
    });
  }
  return changes;
}
