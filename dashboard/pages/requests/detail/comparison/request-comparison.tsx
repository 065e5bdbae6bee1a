/** Two captured requests compared: request line, headers and bodies of both, and of their responses. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import { capturedRequestQuery } from "../../../../api/captured-request.ts";
import { ErrorBoundary } from "../../../../ui/feedback/error-boundary.tsx";
import { QueryContent } from "../../../../ui/feedback/query-content.tsx";
import { Skeleton } from "../../../../ui/feedback/skeleton.tsx";
import { formatBytes } from "../../../../ui/numbers.ts";
import { Badge, Section } from "../../../../ui/section.tsx";
import {
  areBodiesEqual,
  compareRequests,
  readComparableBody,
  type ComparableBody,
  type ValueChange,
} from "../../decode/compare-requests.ts";
import { LongText } from "../long-text.tsx";
import { PreciseTime } from "../precise-time.tsx";
import { ChangeTable } from "./change-table.tsx";
import "../detail.css";

const PATH_SHOWN_CHARS = 200;

const TextComparison = lazy(async () => {
  const { TextComparison: component } = await import("./text-comparison.tsx");
  return { default: component };
});

interface RequestComparisonProps {
  id: string;
  otherId: string;
}

export function RequestComparison({ id, otherId }: RequestComparisonProps) {
  const original = useQuery(capturedRequestQuery(id));
  const other = useQuery(capturedRequestQuery(otherId));
  return (
    <div className="request-detail">
      <QueryContent query={original} lines={8}>
        {(before) => (
          <QueryContent query={other} lines={8}>
            {(after) => <LoadedComparison before={before} after={after} />}
          </QueryContent>
        )}
      </QueryContent>
    </div>
  );
}

interface Pair {
  before: CaptureDetail;
  after: CaptureDetail;
}

function LoadedComparison({ before, after }: Pair) {
  const changes = compareRequests(before, after);
  return (
    <>
      <div className="sides">
        <ComparedRequest title="Original" request={before} />
        <ComparedRequest title="Compared with" request={after} />
      </div>
      <ChangeSection title="Request line" changes={changes.line} />
      <ChangeSection title="Request headers" changes={changes.requestHeaders} />
      <BodyComparison title="Request body" side="request" before={before} after={after} />
      <ChangeSection title="Outcome" changes={changes.outcome} />
      <ChangeSection title="Response headers" changes={changes.responseHeaders} />
      <BodyComparison title="Response body" side="response" before={before} after={after} />
    </>
  );
}

function ComparedRequest({ title, request }: { title: string; request: CaptureDetail }) {
  return (
    <Section title={title}>
      <Link to="/requests/$id" params={{ id: request.id }}>
        {request.method} <LongText text={request.path} maxChars={PATH_SHOWN_CHARS} />
      </Link>
      <div className="hint">
        <PreciseTime timestamp={request.timestamp} />
      </div>
    </Section>
  );
}

interface ChangeSectionProps {
  title: string;
  /** null when they are headers, and those of one request were not stored. */
  changes: readonly ValueChange[] | null;
}

function ChangeSection({ title, changes }: ChangeSectionProps) {
  return (
    <Section title={title}>
      {changes === null && (
        <p className="hint">Not compared: at least one was stored without them.</p>
      )}
      {changes?.length === 0 && <Badge tone="good">no differences</Badge>}
      {changes !== null && changes.length > 0 && (
        <ChangeTable caption={`Differences of the ${title.toLowerCase()}`} changes={changes} />
      )}
    </Section>
  );
}

interface BodyComparisonProps extends Pair {
  title: string;
  side: "request" | "response";
}

function BodyComparison({ title, side, before, after }: BodyComparisonProps) {
  const bodies = useComparableBodies(before, after, side);
  if (bodies === null) {
    return (
      <Section title={title}>
        <Skeleton lines={3} />
      </Section>
    );
  }
  return (
    <Section title={title}>
      <Bodies title={title} before={bodies[0]} after={bodies[1]} />
    </Section>
  );
}

function Bodies({
  title,
  before,
  after,
}: {
  title: string;
  before: ComparableBody;
  after: ComparableBody;
}) {
  const isCut = before.isCut || after.isCut;
  if (areBodiesEqual(before, after)) {
    return (
      <>
        <Badge tone="good">{before.bytes.length === 0 ? "both empty" : "no differences"}</Badge>
        {isCut && <span className="hint"> in the parts that are stored</span>}
      </>
    );
  }
  return (
    <>
      {isCut && (
        <p className="hint">
          Not all of both bodies is stored or shown: only that part is compared.
        </p>
      )}
      {before.text === null || after.text === null ? (
        <p>
          The bytes differ: {formatBytes(before.bytes.length)} and {formatBytes(after.bytes.length)}
          .
        </p>
      ) : (
        <ErrorBoundary>
          <Suspense fallback={<Skeleton lines={6} />}>
            <TextComparison label={title} before={before.text} after={after.text} />
          </Suspense>
        </ErrorBoundary>
      )}
    </>
  );
}

/** @returns null while they are being decompressed. */
function useComparableBodies(
  before: CaptureDetail,
  after: CaptureDetail,
  side: "request" | "response",
): [ComparableBody, ComparableBody] | null {
  const [bodies, setBodies] = useState<[ComparableBody, ComparableBody] | null>(null);
  useEffect(() => {
    let isWanted = true;
    void Promise.all([readComparableBody(before, side), readComparableBody(after, side)]).then(
      (read) => {
        if (isWanted) setBodies(read);
      },
    );
    return () => {
      isWanted = false;
    };
  }, [before, after, side]);
  return bodies;
}
