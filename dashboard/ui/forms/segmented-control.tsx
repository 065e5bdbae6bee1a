/** A row of short choices, one of which is selected, such as ranges of time. */
import type { ReactNode } from "react";

interface SegmentedControlProps<Value extends string> {
  /** Names the choices for screen readers. */
  label: string;
  value: Value;
  choices: readonly { value: Value; label: ReactNode }[];
  onChoose: (value: Value) => void;
}

export function SegmentedControl<Value extends string>(props: SegmentedControlProps<Value>) {
  const { label, value, choices, onChoose } = props;
  return (
    <div className="segments" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChoose(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </div>
  );
}
