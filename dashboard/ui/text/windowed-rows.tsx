/** A long list of rows in a box that scrolls. Only the rows in view are in the document. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type ComponentProps, type ReactNode } from "react";

const OVERSCAN_ROWS = 10;
/** In pixels: about as high as the box. */
const INITIAL_RECT = { width: 0, height: 480 };

interface WindowedRowsProps extends Omit<ComponentProps<"div">, "children" | "ref"> {
  count: number;
  /** In pixels: of every row, or of a usual one when rows are measured. */
  rowHeight: number;
  /** Rows have different heights. */
  isMeasured?: boolean;
  /** A row that is scrolled into view when it changes. */
  activeIndex?: number | undefined;
  /** Keeps the end in view while rows are added, unless the user has scrolled away from it. */
  followsEnd?: boolean;
  renderRow: (index: number) => ReactNode;
}

export function WindowedRows({
  count,
  rowHeight,
  isMeasured = false,
  activeIndex,
  followsEnd = false,
  renderRow,
  className = "",
  ...frameProps
}: WindowedRowsProps) {
  const frame = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => frame.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN_ROWS,
    // Rows are in the first rendering, which would otherwise be laid out twice.
    initialRect: INITIAL_RECT,
    useFlushSync: false,
  });
  useEffect(() => {
    if (activeIndex !== undefined) virtualizer.scrollToIndex(activeIndex, { align: "auto" });
  }, [activeIndex, virtualizer]);
  useEffect(() => {
    if (followsEnd && isAtEnd.current && count > 0) virtualizer.scrollToIndex(count - 1);
  }, [followsEnd, count, virtualizer]);
  return (
    <div
      className={`windowed ${className}`}
      ref={frame}
      tabIndex={0}
      onScroll={({ currentTarget: box }) => {
        isAtEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - rowHeight;
      }}
      {...frameProps}
    >
      <div role="presentation" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map(({ key, index, start }) => (
          <div
            key={key}
            role="presentation"
            className="windowed-row"
            data-index={index}
            ref={isMeasured ? virtualizer.measureElement : undefined}
            style={{ transform: `translateY(${start}px)` }}
          >
            {renderRow(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
