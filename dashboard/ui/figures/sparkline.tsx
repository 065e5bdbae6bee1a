/** A small chart without axes: a bar for each value. */
const HEIGHT = 100;
const BAR_WIDTH = 10;
const GAP = 3;
/** So that a value that is small beside the others is still visible. */
const BAR_MIN_HEIGHT = 4;

interface SparklineProps {
  /** Says what screen readers can't see. */
  label: string;
  values: readonly number[];
}

export function Sparkline({ label, values }: SparklineProps) {
  const max = Math.max(1, ...values);
  const bars = values.map((value, at) => {
    const height = value === 0 ? 1 : Math.max((value / max) * HEIGHT, BAR_MIN_HEIGHT);
    return `M${at * BAR_WIDTH} ${HEIGHT}v${-height}h${BAR_WIDTH - GAP}v${height}z`;
  });
  return (
    <svg
      className="sparkline"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${values.length * BAR_WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
    >
      <path d={bars.join("")} />
    </svg>
  );
}
