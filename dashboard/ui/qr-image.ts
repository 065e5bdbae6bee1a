/** A QR code as a picture. Its ground is light whatever the theme: readers want it so. */
import { qrCode } from "./qr-code.ts";

/** The light margin that readers find it by. */
const QUIET_MODULES = 4;

/** @returns nothing where the text is too long for one. */
export function qrImage(text: string): SVGElement[] {
  const modules = qrCode(text);
  if (modules === null) return [];
  const size = String(modules.length + 2 * QUIET_MODULES);
  let path = "";
  modules.forEach((row, y) =>
    row.forEach((isDark, x) => {
      if (isDark) path += `M${x + QUIET_MODULES} ${y + QUIET_MODULES}h1v1h-1z`;
    }),
  );
  return [
    svg(
      "svg",
      { class: "qr-code", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": "QR code" },
      svg("rect", { width: size, height: size, fill: "#fff" }),
      svg("path", { d: path, fill: "#000", "shape-rendering": "crispEdges" }),
    ),
  ];
}

function svg(
  tag: "svg" | "rect" | "path",
  attributes: Record<string, string>,
  ...children: Node[]
): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
