/** The headers and the policy of the reference, which is one HTML document with its style and its script inside. */
import { toBase64, toUtf8 } from "../../../shared/bytes.ts";
import type { ApiContext } from "../route.ts";

/** @param policy from `buildContentSecurityPolicy`, for this page or for one with the same style and script. */
export function sendReferencePage(c: ApiContext, page: string, policy: string): Response {
  return c.body(page, 200, {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": policy,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
  });
}

/**
 * Only the page's own style and script are allowed, by their hashes. They can send requests to this origin only,
 * and cannot turn text into HTML.
 */
export async function buildContentSecurityPolicy(page: string): Promise<string> {
  const [style, script] = await Promise.all([
    hashElement(page, "style"),
    hashElement(page, "script"),
  ]);
  return [
    "default-src 'none'",
    `style-src ${style}`,
    `script-src ${script}`,
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

async function hashElement(page: string, element: "style" | "script"): Promise<string> {
  const content = new RegExp(`<${element}>(.*?)</${element}>`, "s").exec(page)?.[1] ?? "";
  const digest = await crypto.subtle.digest("SHA-256", toUtf8(content));
  return `'sha256-${toBase64(new Uint8Array(digest))}'`;
}
