/** The size of an image, from its first bytes: a small file can decode to gigabytes of pixels. */

/** 24 million: what a phone's camera takes. */
export const IMAGE_MAX_PIXELS = 24_000_000;

interface ImageSize {
  width: number;
  height: number;
}

/** @returns null for all formats but PNG, JPEG, GIF and WebP. */
export function readImageSize(bytes: Uint8Array): ImageSize | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    if (hasText(bytes, 1, "PNG\r\n"))
      return { width: view.getUint32(16), height: view.getUint32(20) };
    if (hasText(bytes, 0, "GIF8")) {
      return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
    }
    if (hasText(bytes, 0, "RIFF") && hasText(bytes, 8, "WEBP")) return readWebpSize(bytes, view);
    if (view.getUint16(0) === 0xffd8) return readJpegSize(view);
  } catch (error) {
    // The bytes end too early.
    if (!(error instanceof RangeError)) throw error;
  }
  return null;
}

function hasText(bytes: Uint8Array, at: number, text: string): boolean {
  return [...text].every((character, index) => bytes[at + index] === character.charCodeAt(0));
}

function readWebpSize(bytes: Uint8Array, view: DataView): ImageSize | null {
  if (hasText(bytes, 12, "VP8X")) {
    const read24 = (at: number) => view.getUint16(at, true) + (view.getUint8(at + 2) << 16) + 1;
    return { width: read24(24), height: read24(27) };
  }
  if (hasText(bytes, 12, "VP8L")) {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (!hasText(bytes, 12, "VP8 ")) return null;
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
}

/** A JPEG is a list of segments; the size is in the first one that starts a frame. */
function readJpegSize(view: DataView): ImageSize | null {
  let at = 2;
  for (;;) {
    if (view.getUint8(at) !== 0xff) return null;
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    at += 2 + view.getUint16(at + 2);
  }
}
