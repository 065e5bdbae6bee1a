/** The request line, the outcome, and how long the request took. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ErrorCode } from "../../../../protocol/errors.ts";
import { joinTarget } from "../../../../protocol/request-target.ts";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { decodeLetters } from "../../../../shared/text/percent-encoding.ts";
import { useTunnel } from "../../../api/tunnels.ts";
import { CopyButton } from "../../../ui/copy.tsx";
import { Fact, Facts } from "../../../ui/facts.tsx";
import { formatBytes } from "../../../ui/numbers.ts";
import { Badge } from "../../../ui/section.tsx";
import type { Tone } from "../../../ui/figures/tone.ts";
import { RelativeTime } from "../../../ui/time.tsx";
import { explainError, formatStatus } from "./explanations.ts";
import { LongText } from "./long-text.tsx";
import { PreciseTime } from "./precise-time.tsx";
import { RuleBadges } from "./rule-badges.tsx";
import { TimingBar } from "./timing-bar.tsx";

const METHOD_SHOWN_CHARS = 50;
const URL_SHOWN_CHARS = 500;

interface RequestSummaryProps {
  request: CaptureDetail;
  actions: ReactNode;
}

export function RequestSummary({ request, actions }: RequestSummaryProps) {
  const tunnel = useTunnel(request.tunnel_id).data;
  const { error } = request;
  // Without a status, a badge names the error.
  const isNamedHere = request.state === "failed" && request.status !== null;
  const url = `${tunnel?.publicUrl.replace(/\/$/, "") ?? ""}${joinTarget(request.path, request.query)}`;
  return (
    <section className="card request-summary" aria-label="Summary">
      <div className="request-line">
        <h2>
          <span className="method">{request.method.slice(0, METHOD_SHOWN_CHARS)}</span>{" "}
          <LongText text={decodeLetters(url)} maxChars={URL_SHOWN_CHARS} />
        </h2>
        <CopyButton text={url} label="Copy the URL" kind="quiet" />
      </div>
      <div className="request-badges">
        <OutcomeBadges request={request} />
      </div>
      {error !== null && (
        <p className="notice warning">
          {isNamedHere && <strong>{formatErrorCode(error)}.</strong>}{" "}
          {explainError(error, request.refused_by)}
        </p>
      )}
      <Facts>
        <Fact name="Tunnel">
          <Link to="/tunnels/$id" params={{ id: request.tunnel_id }}>
            {tunnel?.name ?? "Show the tunnel"}
          </Link>
        </Fact>
        <Fact name="Received">
          <PreciseTime timestamp={request.timestamp} />{" "}
          <span className="hint">
            <RelativeTime timestamp={request.timestamp} />
          </span>
        </Fact>
        {request.client_ip !== "" && <Fact name="Visitor">{request.client_ip}</Fact>}
        <Fact name="Request">{formatBytes(request.request_size)}</Fact>
        <Fact name="Response">{formatBytes(request.response_size)}</Fact>
      </Facts>
      <TimingBar request={request} />
      {actions}
    </section>
  );
}

const STATE_BADGES: Partial<Record<CaptureDetail["state"], { tone: Tone; text: string }>> = {
  open: { tone: "neutral", text: "in progress" },
  aborted: { tone: "warning", text: "aborted by the visitor" },
  failed: { tone: "bad", text: "failed" },
};

function OutcomeBadges({ request }: { request: CaptureDetail }) {
  const { id, status, state, kind, error, replay_of: original } = request;
  // The status of a failed request already says that it failed.
  const stateBadge = state === "failed" && status !== null ? undefined : STATE_BADGES[state];
  return (
    <>
      {status !== null && <Badge tone={getStatusTone(status)}>{formatStatus(status)}</Badge>}
      {stateBadge && (
        <Badge tone={stateBadge.tone}>
          {state === "failed" && error !== null ? formatErrorCode(error) : stateBadge.text}
        </Badge>
      )}
      {kind === "websocket" && <Badge>WebSocket</Badge>}
      {kind === "sse" && <Badge>event stream</Badge>}
      <RuleBadges request={request} />
      {original !== null && (
        <Badge>
          replay of{" "}
          <Link to="/requests/$id" params={{ id: original }}>
            this request
          </Link>
          {" · "}
          <Link to="/requests/$id" params={{ id: original }} search={{ compare: id }}>
            compare
          </Link>
        </Badge>
      )}
    </>
  );
}

/** `origin_failed` becomes `Origin failed`. */
function formatErrorCode(code: ErrorCode): string {
  return `${code.charAt(0).toUpperCase()}${code.slice(1).replaceAll("_", " ")}`;
}

function getStatusTone(status: number): Tone {
  if (status >= 500) return "bad";
  if (status >= 400) return "warning";
  return status >= 300 ? "neutral" : "good";
}
