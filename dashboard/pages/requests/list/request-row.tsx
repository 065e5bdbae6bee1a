/** One request in the list. */
import { memo } from "react";
import { LISTED_QUERY_MAX_CHARS } from "../../../../protocol/limits.ts";
import { joinTarget } from "../../../../protocol/request-target.ts";
import type { CaptureSummary } from "../../../../protocol/schemas/inspector/captures.ts";
import { decodeLetters } from "../../../../shared/text/percent-encoding.ts";
import { HOUR_MS } from "../../../../shared/time.ts";
import { formatListedPath } from "../../../ui/text/listed-path.ts";
import { LOCALE } from "../../../ui/text/locale.ts";
import { formatBytes, formatMs } from "../../../ui/numbers.ts";
import { Badge } from "../../../ui/section.tsx";
import { VisitorText } from "../../../ui/text/visitor-text.tsx";

/** The bars are logarithmic: they are full from here on. */
const DURATION_BAR_FULL_MS = 30_000;
const SIZE_BAR_FULL_BYTES = 100_000_000;

/** The time of an older request is shown with its day, and without milliseconds. */
const TIME_ONLY_MS = 12 * HOUR_MS;

const clock = new Intl.DateTimeFormat(LOCALE, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short" });
const exact = new Intl.DateTimeFormat(LOCALE, { dateStyle: "full", timeStyle: "long" });

interface RequestRowProps {
  /** The id of the element, for `aria-activedescendant`. */
  domId: string;
  capture: CaptureSummary;
  index: number;
  topPx: number;
  /** undefined when the list is about a single tunnel. */
  tunnelName: string | undefined;
  isActive: boolean;
  isSelected: boolean;
  isMarked: boolean;
  isBookmarked: boolean;
}

/** Clicks are handled by the list, which also has the keyboard focus. */
export const RequestRow = memo(function RequestRow(props: RequestRowProps) {
  const { domId, capture, index, topPx, tunnelName } = props;
  const { id, method, duration_ms: ms, request_size: sent, response_size: received } = capture;
  const isOpen = capture.state === "open";
  return (
    <div
      role="row"
      id={domId}
      data-id={id}
      // The header is the first row.
      aria-rowindex={index + 2}
      aria-selected={props.isSelected}
      className={`request-row${props.isActive ? " active" : ""}${props.isMarked ? " marked" : ""}`}
      style={{ transform: `translateY(${topPx}px)` }}
    >
      <span role="gridcell" className="method">
        {method}
      </span>
      <span role="gridcell" className={`status ${getStatusClass(capture)}`}>
        {formatStatus(capture)}
      </span>
      <span role="gridcell" className="path">
        {props.isBookmarked && (
          <span className="row-mark" role="img" aria-label="Bookmarked">
            ★
          </span>
        )}
        {props.isMarked && (
          <span className="row-mark" role="img" aria-label="Marked for a diff">
            ◆
          </span>
        )}
        <Target capture={capture} />
        <Badges capture={capture} />
      </span>
      {tunnelName !== undefined && (
        <span role="gridcell" className="tunnel">
          <bdi>{tunnelName}</bdi>
        </span>
      )}
      <span role="gridcell" className="time">
        <Time timestamp={capture.timestamp} />
      </span>
      <span role="gridcell" className="quantity">
        {ms === null ? "…" : formatMs(ms)}
        <Bar ratio={getLogRatio(ms ?? 0, DURATION_BAR_FULL_MS)} />
      </span>
      <span
        role="gridcell"
        className="quantity size"
        title={isOpen ? "Still open: at least this much has been transferred" : undefined}
      >
        {isOpen && "≥ "}
        {formatBytes(sent + received)}
        <Bar ratio={getLogRatio(sent + received, SIZE_BAR_FULL_BYTES)} />
      </span>
      <span role="gridcell" className="row-actions">
        <button type="button" className="quiet" tabIndex={-1} aria-label="Actions" data-menu={id}>
          ⋯
        </button>
      </span>
    </div>
  );
});

function Target({ capture: { path, query = null } }: { capture: CaptureSummary }) {
  const isCut = query?.length === LISTED_QUERY_MAX_CHARS;
  return (
    <span className="target" title={joinTarget(path, query) + (isCut ? "…" : "")}>
      <VisitorText text={formatListedPath(path)} dir="ltr" />
      {query !== null && (
        <VisitorText className="query" text={`?${decodeLetters(query)}`} dir="ltr" />
      )}
    </span>
  );
}

function Badges({
  capture: { state, error, kind, replay_of: original },
}: {
  capture: CaptureSummary;
}) {
  return (
    <span className="row-badges">
      {kind !== "http" && <Badge>{kind === "sse" ? "events" : "WebSocket"}</Badge>}
      {original !== null && <Badge>replay</Badge>}
      {state === "open" && <Badge tone="good">open</Badge>}
      {state === "aborted" && <Badge tone="warning">aborted</Badge>}
      {(state === "failed" || state === "refused") && (
        <Badge tone="bad">{error === null ? state : error.replaceAll("_", " ")}</Badge>
      )}
    </span>
  );
}

function Time({ timestamp }: { timestamp: string }) {
  const at = new Date(timestamp);
  const isRecent = Date.now() - at.getTime() < TIME_ONLY_MS;
  return (
    <time dateTime={timestamp} title={exact.format(at)}>
      {isRecent ? clock.format(at) : `${day.format(at)}, ${clock.format(at).slice(0, 8)}`}
    </time>
  );
}

function Bar({ ratio }: { ratio: number }) {
  return <i className="bar" style={{ width: `${ratio * 100}%` }} />;
}

function getLogRatio(value: number, full: number): number {
  return Math.min(1, Math.log1p(value) / Math.log1p(full));
}

function formatStatus({ status, state }: CaptureSummary): string {
  if (status !== null) return String(status);
  return state === "open" ? "…" : "–";
}

function getStatusClass({ status, state }: CaptureSummary): string {
  if (status === null) return state === "failed" ? "bad" : "";
  if (status >= 500) return "bad";
  if (status >= 400) return "warning";
  return status >= 300 ? "" : "good";
}
