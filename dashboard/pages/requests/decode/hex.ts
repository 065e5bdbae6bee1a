/** Bytes as a hex dump. */

export const HEX_ROW_BYTES = 16;

interface HexRow {
  offset: string;
  hex: string;
  /** Printable ASCII; a dot for every other byte. */
  text: string;
}

export function formatHexRow(bytes: Uint8Array, row: number): HexRow {
  const start = row * HEX_ROW_BYTES;
  const part = [...bytes.subarray(start, start + HEX_ROW_BYTES)];
  const digits = part.map((byte) => byte.toString(16).padStart(2, "0"));
  const halves = [digits.slice(0, HEX_ROW_BYTES / 2), digits.slice(HEX_ROW_BYTES / 2)];
  return {
    offset: start.toString(16).padStart(8, "0"),
    hex: halves.map((half) => half.join(" ")).join("  "),
    text: part
      .map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "."))
      .join(""),
  };
}
