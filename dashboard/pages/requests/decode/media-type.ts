/** The `Content-Type` of a body that anyone may have sent. */

/** A longer header value is cut: no media type needs more. */
const VALUE_MAX_CHARS = 4_096;

export interface MediaType {
  /** In lower case, without parameters: `text/html`. Empty when there is none. */
  essence: string;
  /** By name in lower case. */
  parameters: ReadonlyMap<string, string>;
}

const PARAMETER = /;\s*([^\s=;"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*))/g;

export function parseMediaType(value: string | undefined): MediaType {
  const text = (value ?? "").slice(0, VALUE_MAX_CHARS);
  const essence = (text.split(/[;,]/, 1)[0] ?? "").trim().toLowerCase();
  const parameters = new Map<string, string>();
  for (const [, name = "", quoted, plain] of text.matchAll(PARAMETER)) {
    const key = name.toLowerCase();
    if (!parameters.has(key))
      parameters.set(key, quoted?.replaceAll(/\\(.)/g, "$1") ?? plain ?? "");
  }
  return { essence, parameters };
}

/** How the content of a body is best shown. SVG and HTML are text: they are never rendered. */
export type ContentKind = "json" | "form" | "multipart" | "image" | "text" | "binary";

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const TEXTS =
  /^text\/|[+/](?:xml|yaml|x-yaml|javascript|ecmascript|graphql|sql|toml|x-sh|x-ndjson|jsonl|csv)$/;

/** @returns null when the type does not say it: then the bytes do. */
export function getContentKind({ essence }: MediaType): ContentKind | null {
  if (/[+/]json$/.test(essence)) return "json";
  if (essence === "application/x-www-form-urlencoded") return "form";
  if (essence.startsWith("multipart/")) return "multipart";
  if (IMAGES.includes(essence)) return "image";
  return TEXTS.test(essence) ? "text" : null;
}
