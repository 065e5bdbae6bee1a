/** The line between two panels, which the user moves with the pointer or with the arrow keys. */
import { useState, type KeyboardEvent, type PointerEvent } from "react";
import { readStored, writeStored } from "../../api/browser-storage.ts";

const STEP_PERCENT = 4;
const MIN_PERCENT = 20;
const MAX_PERCENT = 80;

interface SplitterProps {
  /** Names the line for screen readers. */
  label: string;
  /** `vertical`: a vertical line between panels that are side by side. */
  orientation: "vertical" | "horizontal";
  /** The element whose size is 100 percent: the parent, by default, or the window. */
  area?: "parent" | "window";
  percent: number;
  onMove: (percent: number) => void;
}

export function Splitter({ label, orientation, area = "parent", ...rest }: SplitterProps) {
  const { percent, onMove } = rest;
  const isVertical = orientation === "vertical";
  const move = (next: number) => onMove(clamp(next));

  function handleKey(event: KeyboardEvent): void {
    const [less, more] = isVertical ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    if (event.key === less) move(percent - STEP_PERCENT);
    else if (event.key === more) move(percent + STEP_PERCENT);
    else if (event.key === "Home") move(MIN_PERCENT);
    else if (event.key === "End") move(MAX_PERCENT);
    else return;
    event.preventDefault();
  }

  function handlePointer(event: PointerEvent<HTMLDivElement>): void {
    const line = event.currentTarget;
    if (!line.hasPointerCapture(event.pointerId)) return;
    const { left, width, top, height } =
      area === "parent"
        ? line.parentElement!.getBoundingClientRect()
        : new DOMRect(0, 0, window.innerWidth, window.innerHeight);
    const ratio = isVertical ? (event.clientX - left) / width : (event.clientY - top) / height;
    move(ratio * 100);
  }
  return (
    <div
      className={`splitter ${orientation}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={orientation}
      aria-valuenow={Math.round(percent)}
      aria-valuemin={MIN_PERCENT}
      aria-valuemax={MAX_PERCENT}
      onKeyDown={handleKey}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={handlePointer}
    />
  );
}

/** A size in percent that this browser remembers. */
export function useStoredPercent(
  storageKey: string,
  initial: number,
): [percent: number, setPercent: (percent: number) => void] {
  const [percent, setPercent] = useState(() => {
    const stored = Number(readStored("localStorage", storageKey) ?? initial);
    return Number.isFinite(stored) ? clamp(stored) : initial;
  });
  return [
    percent,
    (next) => {
      setPercent(next);
      writeStored("localStorage", storageKey, String(Math.round(next)));
    },
  ];
}

function clamp(percent: number): number {
  return Math.min(MAX_PERCENT, Math.max(MIN_PERCENT, percent));
}
