/** A QR code, drawn in the browser: its text is not sent anywhere. */
import { useMemo } from "react";
import { encode } from "uqr";

/** ISO/IEC 18004: the quiet zone is four modules wide. */
const QUIET_ZONE_MODULES = 4;

interface QrCodeProps {
  text: string;
  /** Names the content of the code to screen readers. */
  label: string;
}

/** Dark on light in both themes, because not every camera reads the inverse. */
export function QrCode({ text, label }: QrCodeProps) {
  const { size, path } = useMemo(() => draw(text), [text]);
  return (
    <svg className="qr-code" role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`}>
      <path d={`M0 0h${size}v${size}H0z`} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}

function draw(text: string): { size: number; path: string } {
  const { data, size } = encode(text, { border: QUIET_ZONE_MODULES });
  const squares = data.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
  );
  return { size, path: squares.join("") };
}
