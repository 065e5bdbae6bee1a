/** How long a request took: until the first byte of the response, then until its end. */
import type { CaptureDetail } from "../../../../protocol/schemas/inspector/captures.ts";
import { formatMs } from "../../../ui/numbers.ts";

export function TimingBar({ request }: { request: CaptureDetail }) {
  const { latency_ms: waitMs, duration_ms: totalMs } = request;
  if (totalMs === null) return null;
  const total = <li>Total {formatMs(totalMs)}</li>;
  if (waitMs === null) return <ul className="timing-legend">{total}</ul>;
  const isStream = request.kind !== "http";
  const transferMs = Math.max(0, totalMs - waitMs);
  const share = totalMs === 0 ? 100 : (100 * Math.min(waitMs, totalMs)) / totalMs;
  return (
    <div className="timing">
      <div className="timing-bar" aria-hidden="true">
        <div className="timing-wait" style={{ width: `${share}%` }} />
        {transferMs > 0 && <div className="timing-transfer" />}
      </div>
      <ul className="timing-legend">
        <li className="timing-wait-label">First byte after {formatMs(waitMs)}</li>
        <li className="timing-transfer-label">
          {isStream ? "Open for" : "Transfer"} {formatMs(transferMs)}
        </li>
        {total}
      </ul>
    </div>
  );
}
