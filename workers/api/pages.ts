/** The pages for browsers on the service's own hosts. Each is a single document that loads nothing else. */
import account from "../../dashboard/account.html";
import activate from "../../dashboard/activate.html";
import invitation from "../../dashboard/invitation.html";
import reset from "../../dashboard/reset.html";
import twoFactor from "../../dashboard/two-factor.html";
import { toBase64, toUtf8 } from "../../shared/bytes.ts";
import { createRouter, type ApiContext } from "./route.ts";

export const pages = createRouter();

const PAGES = {
  "/": account,
  "/activate": activate,
  "/invitation": invitation,
  "/reset": reset,
  "/two-factor": twoFactor,
};

for (const [path, page] of Object.entries(PAGES)) {
  let policy: Promise<string> | undefined;
  pages.get(path, async (c) => {
    policy ??= getContentPolicy(page);
    return sendPage(c, page, await policy);
  });
}

/** @param policy from `getContentPolicy`, for this page or for one with the same style and script. */
export function sendPage(c: ApiContext, page: string, policy: string): Response {
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
export async function getContentPolicy(page: string): Promise<string> {
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
