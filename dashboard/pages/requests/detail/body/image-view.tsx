/** An image, drawn on a canvas: the page loads no addresses, and the image can't contain a script. */
import { useEffect, useMemo, useRef, useState } from "react";
import { formatCount } from "../../../../ui/numbers.ts";
import { IMAGE_MAX_PIXELS, readImageSize } from "../../decode/image-size.ts";

interface ImageViewProps {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
}

export function ImageView({ name, bytes }: ImageViewProps) {
  const size = useMemo(() => readImageSize(bytes), [bytes]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [failedBytes, setFailedBytes] = useState<Uint8Array>();
  const pixels = size === null ? 0 : size.width * size.height;
  const isDrawn = pixels > 0 && pixels <= IMAGE_MAX_PIXELS;
  useEffect(() => {
    if (!isDrawn) return;
    let isWanted = true;
    createImageBitmap(new Blob([bytes])).then(
      (bitmap) => {
        const { current: target } = canvas;
        if (isWanted && target !== null) {
          // The file of a photo can say that it is shown turned by 90 degrees.
          target.width = bitmap.width;
          target.height = bitmap.height;
          target.getContext("2d")?.drawImage(bitmap, 0, 0);
        }
        bitmap.close();
      },
      () => setFailedBytes(bytes),
    );
    return () => {
      isWanted = false;
    };
  }, [bytes, isDrawn]);
  if (size === null || failedBytes === bytes)
    return <p className="hint">The image is damaged or incomplete.</p>;
  const dimensions = `${formatCount(size.width)} × ${formatCount(size.height)} pixels`;
  if (!isDrawn) return <p className="hint">The image is too large to be shown: {dimensions}.</p>;
  return (
    <figure className="image">
      <canvas
        ref={canvas}
        width={size.width}
        height={size.height}
        role="img"
        aria-label={`${name} as an image`}
      />
      <figcaption className="hint">{dimensions}</figcaption>
    </figure>
  );
}
