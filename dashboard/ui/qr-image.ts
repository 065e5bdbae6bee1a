/** A QR code as an SVG image. Its background is white in every theme, because readers require that. */
import { encodeQrCode } from "./qr-code.ts";

/** The white margin that readers need to find the code. */
const QUIET_MODULES = 4;

/** @returns no image when the text is too long for a QR code. */
export function createQrImage(text: string): SVGElement[] {
  const modules = encodeQrCode(text);
  if (modules === null) return [];
  const size = String(modules.length + 2 * QUIET_MODULES);
  let path = "";
  modules.forEach((row, y) =>
    row.forEach((isDark, x) => {
      if (isDark) path += `M${x + QUIET_MODULES} ${y + QUIET_MODULES}h1v1h-1z`;
    }),
  );
  return [
    createSvgElement(
      "svg",
      { class: "qr-code", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": "QR code" },
      createSvgElement("rect", { width: size, height: size, fill: "#fff" }),
      createSvgElement("path", { d: path, fill: "#000", "shape-rendering": "crispEdges" }),
    ),
  ];
}

function createSvgElement(
  tag: "svg" | "rect" | "path",
  attributes: Record<string, string>,
  ...children: Node[]
): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
