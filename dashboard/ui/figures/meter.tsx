/** How much of a limit is used, as text with a bar. */
import type { ReactNode } from "react";
import type { Tone } from "./tone.ts";

/** From this part of the limit on, the bar warns. */
const NEARLY_FULL_RATIO = 0.8;

interface MeterProps {
  label: string;
  value: number;
  /** null: no limit, and so no bar. */
  max: number | null;
  format: (value: number) => string;
  /** For screen readers only, where the place of the meter says what it is about. */
  isLabelHidden?: boolean;
  /** Shown after the limit, as in `$1.00 of $20.00 this month`. */
  period?: string;
  /** A line below the bar. */
  children?: ReactNode;
}

export function Meter(props: MeterProps) {
  const { label, value, max, format, isLabelHidden = false, period, children } = props;
  return (
    <div className="meter">
      <div className="meter-text">
        <span className={isLabelHidden ? "hidden-text" : ""}>{label}</span>
        <span>
          {format(value)}
          {max !== null && (
            <span className="hint">
              {" "}
              of {format(max)} {period}
            </span>
          )}
        </span>
      </div>
      {max !== null && <Bar label={label} value={value} max={max} />}
      {children !== undefined && <p className="hint">{children}</p>}
    </div>
  );
}

function Bar({ label, value, max }: { label: string; value: number; max: number }) {
  const ratio = max === 0 ? 1 : Math.min(value / max, 1);
  const percent = Math.round(ratio * 100);
  return (
    <div
      className="meter-bar"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
      aria-valuetext={`${percent}% used`}
    >
      <div className={getTone(ratio)} style={{ width: `${ratio * 100}%` }} />
    </div>
  );
}

function getTone(ratio: number): Tone {
  if (ratio >= 1) return "bad";
  return ratio >= NEARLY_FULL_RATIO ? "warning" : "neutral";
}
