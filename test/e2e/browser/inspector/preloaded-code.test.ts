/** Code that a page needs later is loaded before the user needs it. */
import type { Page } from "playwright-core";
import { afterAll, expect, test } from "vitest";
import { startInspectedSite, type InspectedSite } from "../../../harness/browser/inspected-site.ts";
import { getSection, usePages } from "../../../harness/browser/pages.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

let site: InspectedSite;
const pages = usePages(async () => {
  site = await startInspectedSite("preloaded-detail");
  return site.api;
});
afterAll(() => site.close());

/** Waits until the page has loaded a script, which no test asks for. */
async function waitForScript(page: Page, script: string): Promise<void> {
  const find = () =>
    page.evaluate<string | undefined>(`
      performance.getEntriesByType("resource")
        .find(({ name, responseEnd }) => /${script}-[^/]*js$/.test(name) && responseEnd > 0)?.name
    `);
  await expect.poll(find, WAIT_OPTIONS).toBeDefined();
  // The page runs the script after it has loaded its styles.
  const areStylesLoaded =
    "[...document.styleSheets].length === document.querySelectorAll('link[rel=stylesheet]').length";
  await expect.poll(() => page.evaluate(areStylesLoaded), WAIT_OPTIONS).toBe(true);
  await page.evaluate(`import("${await find()}").then(() => {})`);
}

/** Runs after each change of the page, before the browser shows it. */
const WATCH_PANEL = `
  window.panel = { changes: 0, changesWithoutDetails: 0 };
  new MutationObserver(() => {
    const shown = document.querySelector(".detail-panel");
    if (shown === null) return;
    panel.changes += 1;
    if (shown.querySelector(".request-detail") === null) panel.changesWithoutDetails += 1;
  }).observe(document.body, { childList: true, subtree: true });
`;

test("the first request that a page opens has its details at once, never a placeholder for their code", async () => {
  await site.visit("/first", "/second");
  const page = await pages.openAs(site.email, "/requests");
  await waitForScript(page, "request-detail");
  await page.evaluate(WATCH_PANEL);
  const details = getSection(page, "Details of the request");
  for (const path of ["/first", "/second"]) {
    await page.locator("[data-id]").filter({ hasText: path }).click();
    await details.getByRole("heading", { name: path }).waitFor();
  }
  expect(await page.evaluate("panel.changes")).toBeGreaterThan(0);
  expect(await page.evaluate("panel.changesWithoutDetails")).toBe(0);
});

test("the palette and the docked inspector have their code before they are opened", async () => {
  const page = await pages.openAs(site.email, "/tokens");
  for (const script of ["palette", "docked-inspector"]) await waitForScript(page, script);
  await page.route(/\.js$/, (route) => route.abort());
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("combobox", { name: "Find anything" });
  await palette.waitFor();
  await page.keyboard.press("Escape");
  // Until then, keys are text for it.
  await palette.waitFor({ state: "hidden" });
  await page.keyboard.press("i");
  await getSection(page, "Inspector").waitFor();
});
