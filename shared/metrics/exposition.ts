/**
 * Metrics as text for Prometheus: its own format (0.0.4) and OpenMetrics 1.0. Both have the same families; they differ in
 * the names of counters' families, the numbers of buckets' bounds, and the last line.
 */
export interface MetricSample {
  /** Follows the name of the family. */
  suffix?: string | undefined;
  labels?: Record<string, string> | undefined;
  value: number;
}

export interface MetricFamily {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram";
  samples: MetricSample[];
}

type ExpositionFormat = "prometheus" | "openmetrics";

export const EXPOSITION_TYPES: Record<ExpositionFormat, string> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

export function formatFamilies(
  families: readonly MetricFamily[],
  format: ExpositionFormat = "prometheus",
): string {
  const text = families.map((family) => formatFamily(family, format)).join("");
  return format === "openmetrics" ? `${text}# EOF\n` : text;
}

/** A family with one sample without labels. */
export function toSingleValue(
  type: "counter" | "gauge",
  name: string,
  help: string,
  value: number,
): MetricFamily {
  return { name, help, type, samples: [{ value }] };
}

/**
 * @param boundsMs upper bounds of the buckets, ascending.
 * @param counts by bucket, not cumulative; the last counts everything slower.
 */
export function toHistogramSamples(
  boundsMs: readonly number[],
  counts: readonly number[],
  sumMs: number,
  labels: Record<string, string> = {},
): MetricSample[] {
  let total = 0;
  const buckets = [...boundsMs, Infinity].map((bound, at) => {
    total += counts[at] ?? 0;
    const le = bound === Infinity ? "+Inf" : String(bound / 1000);
    return { suffix: "_bucket", labels: { ...labels, le }, value: total };
  });
  return [
    ...buckets,
    { suffix: "_sum", labels, value: sumMs / 1000 },
    { suffix: "_count", labels, value: total },
  ];
}

function formatFamily(
  { name, help, type, samples }: MetricFamily,
  format: ExpositionFormat,
): string {
  const isOpenMetrics = format === "openmetrics";
  const family = isOpenMetrics && type === "counter" ? name.replace(/_total$/, "") : name;
  const lines = samples.map(
    ({ suffix = "", labels = {}, value }) =>
      `${name}${suffix}${formatLabels(labels, isOpenMetrics)} ${value}\n`,
  );
  return `# HELP ${family} ${escape(help)}\n# TYPE ${family} ${type}\n${lines.join("")}`;
}

function formatLabels(labels: Record<string, string>, isOpenMetrics: boolean): string {
  const pairs = Object.entries(labels).map(([name, value]) => {
    const text = isOpenMetrics && name === "le" ? toFloatText(value) : value;
    return `${name}="${escape(text).replaceAll('"', '\\"')}"`;
  });
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

/** OpenMetrics writes a bound as a floating-point number, `1.0` instead of `1`. */
function toFloatText(text: string): string {
  return /^\d+$/.test(text) ? `${text}.0` : text;
}

function escape(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
