/** The edge's error pages in a real browser. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { toRefusalResponse } from "../../../access/refusal.ts";
import { STATUS_BY_CODE, type ErrorCode } from "../../../protocol/errors.ts";
import { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import type { Env } from "../../../workers/env.ts";
import { createErrorPage, createRefusalPage } from "../../../workers/edge/error-pages.ts";
import { openBrowser, openPage } from "../../harness/browser/browser.ts";

const ADDRESS = "http://shop.localhost/";
const ENV = {
  SERVICE_DOMAIN: "example.com",
  API_HOSTS: "api.example.com,example.com",
  PUBLIC_SCHEME: "https",
} as unknown as Env;
const CODES: ErrorCode[] = [
  "invalid_host",
  "method_not_allowed",
  "unauthorized",
  "forbidden",
  "tunnel_not_found",
  "rate_limited",
  "agent_offline",
  "origin_unreachable",
  "origin_failed",
  "maintenance",
  "unavailable",
  "origin_timeout",
];
/** WCAG 2.2, 1.4.3. */
const CONTRAST_MIN = 4.5;
/** The gray level of a browser's default background. */
const CANVAS = { light: 255, dark: 18 } as const;

const newRequest = (accept: string) => new Request(ADDRESS, { headers: { accept } });
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

let browser: Browser;
beforeAll(async () => void (browser = await openBrowser()));
afterAll(() => browser?.close());

/** A script for the page: the lowest contrast between a text and its background. It supports only gray, as on these pages. */
const buildContrastScript = (canvas: number) => `(() => {
  const luminance = (gray) => {
    const part = gray / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const contrasts = [...document.querySelectorAll("h1, p, code, footer")].map((element) => {
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= getComputedStyle(at).opacity;
    const text = Number(/\\d+/.exec(getComputedStyle(element).color)[0]);
    // Code has a translucent gray background.
    const behind = element.tagName === "CODE" ? ${canvas} * 0.8 + 136 * 0.2 : ${canvas};
    const [a, b] = [luminance(text * opacity + behind * (1 - opacity)), luminance(behind)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
  return Math.min(...contrasts);
})()`;

describe.each(CODES)("the page of %s", (code) => {
  test("is self-contained, has a heading and a language, and is readable in both themes", async () => {
    const { page, problems } = await openPage(browser);
    const answer = createErrorPage(newRequest(BROWSER), ENV, code);
    const requestedUrls: string[] = [];
    await page.route("**", async (route) => {
      requestedUrls.push(route.request().url());
      const headers = Object.fromEntries(answer.headers);
      await route.fulfill({ status: 200, headers, body: await answer.clone().text() });
    });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(ADDRESS);
      expect(await page.evaluate(buildContrastScript(CANVAS[colorScheme]))).toBeGreaterThan(
        CONTRAST_MIN,
      );
    }
    await page.setViewportSize({ width: 320, height: 640 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(320);
    expect(await page.locator("html").getAttribute("lang")).toBe("en");
    expect(await page.locator("main h1").allTextContents()).toEqual([await page.title()]);
    expect(await page.locator("footer").textContent()).toContain(`${STATUS_BY_CODE[code]} ${code}`);
    expect(await page.locator("footer a").getAttribute("href")).toBe(
      `https://api.example.com/docs#errors-${code}`,
    );
    expect(new Set(requestedUrls)).toEqual(new Set([ADDRESS]));
    expect(problems).toEqual([]);
    await page.close();
  });

  test("is JSON for a program, in the common format of errors", async () => {
    for (const accept of ["application/json", "*/*"]) {
      const answer = createErrorPage(newRequest(accept), ENV, code);
      expect(answer.status).toBe(STATUS_BY_CODE[code]);
      expect(answer.headers.get("underpass-error")).toBe(code);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      const body = ErrorBody.parse(await answer.json());
      expect(body.error).toBe(code);
      expect(body.message).not.toContain("undefined");
    }
  });
});

test("a refusal with a message of its own has no hint, which belongs to the other message", async () => {
  const explain = async (message?: string): Promise<string> => {
    const refusal = toRefusalResponse({ code: "agent_offline", ...(message && { message }) });
    const page = createRefusalPage(newRequest("*/*"), ENV, {
      code: "agent_offline",
      response: refusal,
    });
    return ErrorBody.parse(await page.json()).message;
  };
  expect(await explain()).toContain("Start the agent");
  expect(await explain("The owner has stopped it.")).toBe("The owner has stopped it.");
});

test("the time to retry is in the header for every client, and in the body for programs", async () => {
  const refusal = () => new Response(null, { headers: { "retry-after": "17" } });
  const programResponse = createRefusalPage(newRequest("*/*"), ENV, {
    code: "rate_limited",
    response: refusal(),
  });
  expect(programResponse.headers.get("retry-after")).toBe("17");
  expect(await programResponse.json()).toMatchObject({ retry_after_seconds: 17 });
  const browserResponse = createRefusalPage(newRequest(BROWSER), ENV, {
    code: "rate_limited",
    response: refusal(),
  });
  expect(browserResponse.headers.get("retry-after")).toBe("17");
  expect(await browserResponse.text()).not.toContain("retryAfter");
});

test("an owner's own message is shown as text, even if it contains HTML", async () => {
  const own = "<script>alert(1)</script> & 'so on' `code`";
  const refusal = toRefusalResponse({ code: "maintenance", message: own });
  const page = createRefusalPage(newRequest(BROWSER), ENV, {
    code: "maintenance",
    response: refusal,
  });
  const text = await page.text();
  expect(text).not.toContain("<script>");
  expect(text).toContain("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#39;so on&#39; `code`");
});

test("asks browsers to use TLS only where the service does, and never for a customer's domain", () => {
  const read = (url: string, env: Partial<Env>) =>
    createErrorPage(new Request(url), env as Env, "agent_offline").headers.get(
      "strict-transport-security",
    );
  expect(read("https://shop.example.com/", ENV)).toBe("max-age=31536000");
  expect(read("https://shop.customer.test/", ENV)).toBeNull();
  expect(read("http://shop.localhost:8787/", {})).toBeNull();
});
