/** Bytes as a hex dump. */
import { WindowedRows } from "../../../../ui/text/windowed-rows.tsx";
import { formatHexRow, HEX_ROW_BYTES } from "../../decode/hex.ts";

const ROW_HEIGHT_PX = 20;

export function HexView({ name, bytes }: { name: string; bytes: Uint8Array }) {
  return (
    <WindowedRows
      className="code-box hex"
      role="region"
      aria-label={`${name} as bytes`}
      count={Math.ceil(bytes.length / HEX_ROW_BYTES)}
      rowHeight={ROW_HEIGHT_PX}
      renderRow={(index) => {
        const { offset, hex, text } = formatHexRow(bytes, index);
        return (
          <div className="hex-row">
            <span className="hex-offset">{offset}</span>
            <span>{hex}</span>
            <span>{text}</span>
          </div>
        );
      }}
    />
  );
}
