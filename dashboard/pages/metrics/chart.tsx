/** Bars over time, drawn by uPlot. A module of its own, so that the library is loaded when a chart is first shown. */
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "react";
import { LOCALE } from "../../ui/text/locale.ts";

const HEIGHT_PX = 240;
/** The part of its bucket's width that a bar takes. */
const BAR_WIDTH_RATIO = 0.75;
/** Between the values of an axis and the chart. */
const AXIS_GAP_PX = 6;
/** The axis of a chart with few requests ends here, so that one request is not as high as a thousand. */
const AXIS_MIN = 4;
/** Steps between the values of an axis: 1, 2 and 5 times the powers of ten. */
const STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power));

/** Steps of the axis of time: divisors of an hour and of a day, and days. */
const TICK_SECONDS = [5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1_440, 2_880, 7_200, 14_400].map(
  (minutes) => minutes * 60,
);
const TICK_SPACE_PX = 72;

const compact = new Intl.NumberFormat(LOCALE, { notation: "compact" });

interface ChartLook {
  tickFormat: Intl.DateTimeFormat;
  /** Ticks that are closer to each other would have the same text. */
  minTickSeconds: number;
  isUtc: boolean;
  /** Values of the axis. By default compact numbers. */
  formatValue?: ((value: number) => string) | undefined;
}

interface ChartProps extends ChartLook {
  /** When the buckets start, in ms since the epoch. */
  startsMs: readonly number[];
  values: readonly number[];
  /** The bucket that is marked. */
  selected: number | null;
  onSelect: (bucket: number | null) => void;
  /** Changes with light and dark: the canvas is drawn again. */
  theme: string;
}

export function Chart(props: ChartProps) {
  const { startsMs, values, selected, onSelect, theme, ...look } = props;
  const { tickFormat, minTickSeconds, isUtc, formatValue } = look;
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const select = useRef(onSelect);
  select.current = onSelect;

  useEffect(() => {
    const element = frame.current!;
    const created = new UPlot(
      createOptions(element, { tickFormat, minTickSeconds, isUtc, formatValue }, (bucket) =>
        select.current(bucket),
      ),
      [[], []],
      element,
    );
    plot.current = created;
    const observer = new ResizeObserver(() => {
      created.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
    };
  }, [tickFormat, minTickSeconds, isUtc, formatValue, theme]);

  useEffect(() => {
    // A bar is drawn in the middle of its bucket.
    const halfMs = ((startsMs[1] ?? 0) - (startsMs[0] ?? 0)) / 2;
    const middles = startsMs.map((startMs) => (startMs + halfMs) / 1000);
    plot.current?.setData([middles, [...values]]);
  }, [startsMs, values, tickFormat, minTickSeconds, isUtc, formatValue, theme]);

  useEffect(() => {
    const chart = plot.current;
    const middle = selected === null ? undefined : chart?.data[0][selected];
    const left = middle === undefined ? -1 : (chart?.valToPos(middle, "x") ?? -1);
    chart?.setCursor({ left, top: left < 0 ? -1 : 1 }, false);
  }, [selected, startsMs, theme]);

  return <div ref={frame} className="chart-canvas" aria-hidden="true" />;
}

function createOptions(
  element: HTMLElement,
  { tickFormat, minTickSeconds, isUtc, formatValue }: ChartLook,
  onSelect: ChartProps["onSelect"],
): UPlot.Options {
  // The style sheet sets these for the chart, because a canvas can't read the variables of the theme.
  const { color, stroke, fill, fontFamily } = getComputedStyle(element);
  const font = `12px ${fontFamily}`;
  const axis = { stroke: color, font, gap: AXIS_GAP_PX, ticks: { show: false } };
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    // The last label is in the middle below the end of the axis, and needs half of its space there.
    padding: [8, TICK_SPACE_PX / 2, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    tzDate: (seconds) => {
      const date = new Date(seconds * 1000);
      return isUtc ? UPlot.tzDate(date, "UTC") : date;
    },
    scales: {
      x: { range: padByHalfBucket },
      y: { range: (_, _min, max) => [0, Math.max(max * 1.1, AXIS_MIN)] },
    },
    series: [
      {},
      {
        fill,
        width: 0,
        paths: UPlot.paths.bars!({ size: [BAR_WIDTH_RATIO, Infinity] }),
        points: { show: false },
      },
    ],
    axes: [
      {
        ...axis,
        size: 32,
        space: TICK_SPACE_PX,
        incrs: TICK_SECONDS.filter((seconds) => seconds >= minTickSeconds),
        grid: { show: false },
        values: (_, splits) => splits.map((seconds) => tickFormat.format(seconds * 1000)),
      },
      {
        ...axis,
        size: ({ ctx }, values) => measureTexts(ctx, font, values ?? []) + AXIS_GAP_PX,
        incrs: STEPS.flat(),
        grid: { stroke, width: 1 },
        values: (_, splits) =>
          splits.map((value) => (formatValue ? formatValue(value) : compact.format(value))),
      },
    ],
    hooks: { setCursor: [({ cursor }) => onSelect(cursor.idx ?? null)] },
  };
}

/** @returns the width of the longest text, in CSS pixels. */
function measureTexts(context: CanvasRenderingContext2D, font: string, texts: readonly string[]) {
  context.save();
  context.font = font;
  const widths = texts.map((text) => context.measureText(text).width);
  context.restore();
  return Math.ceil(Math.max(0, ...widths));
}

/** The first and the last bar are shown in full. */
function padByHalfBucket(plot: UPlot, min: number, max: number): UPlot.Range.MinMax {
  const [first = min, second = max] = plot.data[0];
  const half = (second - first) / 2;
  return [min - half, max + half];
}
