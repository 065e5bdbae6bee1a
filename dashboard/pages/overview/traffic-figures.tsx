/** The connected tunnels, and the traffic of the last 24 hours: four numbers. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { SeriesPoint } from "../../../protocol/schemas/metrics.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { breakdownQuery, metricsQuery, seriesQuery } from "../../api/metrics.ts";
import { formatBytes, formatCount, formatPercent, formatQuantity } from "../../ui/numbers.ts";
import { RequestsLink } from "../../inspector/requests-link.tsx";
import { Sparkline } from "../../ui/figures/sparkline.tsx";

const LAST_24_HOURS = { window: "24h", tunnelId: "" } as const;
/** The series of 24 hours has four buckets an hour. */
const BUCKETS_PER_HOUR = 4;

export function TrafficFigures({ tunnels }: { tunnels: readonly Tunnel[] }) {
  const { data: metrics } = useQuery(metricsQuery);
  const { data: requests } = useQuery(seriesQuery("requests", LAST_24_HOURS));
  const { data: breakdown } = useQuery(breakdownQuery(LAST_24_HOURS));
  const connected = tunnels.filter(({ agentConnected }) => agentConnected).length;
  const errors = breakdown?.statuses.find(({ status }) => status === "5xx")?.requests;
  const captured = breakdown?.captured_requests ?? 0;
  const total = metrics?.requests_last_24h;
  return (
    <dl className="figures">
      <Figure
        name="Tunnels connected"
        number={formatCount(connected)}
        detail={<Link to="/tunnels">of {formatCount(tunnels.length)} total</Link>}
      />
      <Figure
        name="Requests in 24 hours"
        number={total === undefined ? "–" : formatCount(total)}
        detail={
          requests && (
            <Sparkline
              label={`${formatQuantity(total ?? 0, "request")} in the last 24 hours`}
              values={sumByHour(requests)}
            />
          )
        }
      />
      <Figure
        name="Errors in 24 hours"
        number={errors === undefined ? "–" : formatCount(errors)}
        detail={
          errors !== undefined && errors > 0 ? (
            <RequestsLink filter="status:5xx">
              {formatPercent(errors / captured)} of captured requests
            </RequestsLink>
          ) : (
            "responses with a status of 5xx"
          )
        }
      />
      <Figure
        name="Traffic in 24 hours"
        number={metrics ? formatBytes(metrics.bytes_in_last_24h + metrics.bytes_out_last_24h) : "–"}
        detail={<Link to="/metrics">All metrics</Link>}
      />
    </dl>
  );
}

interface FigureProps {
  name: string;
  number: string;
  detail: ReactNode;
}

function Figure({ name, number, detail }: FigureProps) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd className="number">{number}</dd>
      <dd className="hint">{detail}</dd>
    </div>
  );
}

function sumByHour(points: readonly SeriesPoint[]): number[] {
  const hours: number[] = [];
  points.forEach(({ value }, at) => {
    const hour = Math.floor(at / BUCKETS_PER_HOUR);
    hours[hour] = (hours[hour] ?? 0) + value;
  });
  return hours;
}
