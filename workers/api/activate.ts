/** GET /activate: the page on which a person lets a machine in. One file, nothing loaded from elsewhere. */
import page from "../../dashboard/activate.html";
import { toBase64, utf8 } from "../identity/encoding.ts";

export async function activatePage(): Promise<Response> {
  return new Response(page, {
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": await contentPolicy(),
      "Referrer-Policy": "no-referrer",
    },
  });
}

/** Only this page's own style and script run, by their hashes, and they talk to this origin only. */
async function contentPolicy(): Promise<string> {
  const [style, script] = await Promise.all([hashOf("style"), hashOf("script")]);
  return [
    "default-src 'none'",
    `style-src ${style}`,
    `script-src ${script}`,
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

async function hashOf(element: "style" | "script"): Promise<string> {
  const content = new RegExp(`<${element}>(.*?)</${element}>`, "s").exec(page)?.[1] ?? "";
  const digest = await crypto.subtle.digest("SHA-256", utf8(content));
  return `'sha256-${toBase64(new Uint8Array(digest))}'`;
}
