/** The chart of one metric. Its values can be read with the arrow keys, and as a table. */
import { lazy, Suspense, useMemo, useState, type KeyboardEvent } from "react";
import type { MetricWindow, SeriesPoint } from "../../../protocol/schemas/metrics.ts";
import { useTheme } from "../../app/theme.ts";
import { ErrorBoundary } from "../../ui/feedback/error-boundary.tsx";
import { usePrefersDark } from "../../ui/layout/media-query.ts";
import { replaceInvalidLanguage } from "../../ui/text/locale.ts";
import { createBucketFormat, createTickFormat, getMinTickSeconds, isInUtc } from "./windows.ts";

const Chart = lazy(async () => {
  replaceInvalidLanguage();
  const { Chart: component } = await import("./chart.tsx");
  return { default: component };
});

interface TrafficChartProps {
  title: string;
  points: readonly SeriesPoint[];
  window: MetricWindow;
  format: (value: number) => string;
  formatAxis?: ((value: number) => string) | undefined;
}

export function TrafficChart({ title, points, window, format, formatAxis }: TrafficChartProps) {
  const [selected, setSelected] = useState<number | null>(null);
  const theme = `${useTheme()} ${usePrefersDark()}`;
  const startsMs = useMemo(() => points.map(({ timestamp }) => Date.parse(timestamp)), [points]);
  const values = useMemo(() => points.map(({ value }) => value), [points]);
  const tickFormat = useMemo(() => createTickFormat(window), [window]);
  const bucketFormat = useMemo(() => createBucketFormat(window), [window]);
  const last = points.length - 1;
  const at = Math.min(selected ?? last, last);
  const describe = (bucket: number) =>
    `${bucketFormat.format(startsMs[bucket])}: ${format(values[bucket] ?? 0)}`;

  function handleKey(event: KeyboardEvent): void {
    const next = getNextBucket(event.key, selected, last);
    if (next === undefined) return;
    event.preventDefault();
    setSelected(next);
  }
  return (
    <div className="chart">
      <p className="chart-value" aria-hidden="true">
        {selected === null ? (
          <span className="hint">Point at a bar, or use the arrow keys</span>
        ) : (
          describe(at)
        )}
      </p>
      <div
        className="chart-frame"
        role="slider"
        tabIndex={0}
        aria-label={`${title} over time`}
        aria-valuemin={0}
        aria-valuemax={last}
        aria-valuenow={at}
        aria-valuetext={describe(at)}
        aria-readonly="true"
        onKeyDown={handleKey}
        onBlur={() => setSelected(null)}
      >
        <ErrorBoundary>
          <Suspense>
            <Chart
              startsMs={startsMs}
              values={values}
              selected={selected}
              onSelect={setSelected}
              tickFormat={tickFormat}
              minTickSeconds={getMinTickSeconds(window)}
              isUtc={isInUtc(window)}
              formatValue={formatAxis}
              theme={theme}
            />
          </Suspense>
        </ErrorBoundary>
      </div>
    </div>
  );
}

/** @returns undefined for a key that selects nothing. */
function getNextBucket(key: string, selected: number | null, last: number): number | undefined {
  switch (key) {
    case "ArrowLeft":
      return selected === null ? last : Math.max(selected - 1, 0);
    case "ArrowRight":
      return selected === null ? last : Math.min(selected + 1, last);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return undefined;
  }
}
