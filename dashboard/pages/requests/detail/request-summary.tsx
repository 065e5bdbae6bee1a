/** What was requested, what the visitor got, and how long it took. */
import { Link } from "@tanstack/react-router";
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { useTunnel } from "../../../api/tunnels.ts";
import { CopyButton } from "../../../ui/copy.tsx";
import { formatBytes, formatMs } from "../../../ui/numbers.ts";
import { Badge } from "../../../ui/section.tsx";
import { ExactTime } from "../../../ui/time.tsx";

export function RequestSummary({ request }: { request: CaptureDetail }) {
  const tunnel = useTunnel(request.tunnel_id).data;
  const target = request.query === null ? request.path : `${request.path}?${request.query}`;
  const url = `${tunnel?.publicUrl ?? ""}${target}`;
  return (
    <section className="card request-summary" aria-label="Summary">
      <div className="request-line">
        <strong>{request.method}</strong> <bdi className="url">{url}</bdi>
        <CopyButton text={url} label="Copy the URL" kind="quiet" />
      </div>
      <div>
        <Badge>{request.status ?? request.state}</Badge>
        {request.error !== null && <Badge tone="bad">{request.error}</Badge>}
      </div>
      <dl className="facts">
        <div>
          <dt>Tunnel</dt>
          <dd>
            <Link to="/tunnels/$id" params={{ id: request.tunnel_id }}>
              {tunnel?.name ?? "Show the tunnel"}
            </Link>
          </dd>
        </div>
        <div>
          <dt>Time</dt>
          <dd>
            <ExactTime timestamp={request.timestamp} />
          </dd>
        </div>
        <div>
          <dt>Duration</dt>
          <dd>{request.duration_ms === null ? "in progress" : formatMs(request.duration_ms)}</dd>
        </div>
        <div>
          <dt>Size</dt>
          <dd>
            {formatBytes(request.request_size)} sent, {formatBytes(request.response_size)} received
          </dd>
        </div>
        <div>
          <dt>Visitor</dt>
          <dd>{request.client_ip}</dd>
        </div>
      </dl>
    </section>
  );
}
