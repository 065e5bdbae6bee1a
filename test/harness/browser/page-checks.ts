/** What is wrong with a page as it is shown: for screen readers, in light and dark, and on a narrow screen. */
import axe from "axe-core";
import type { Page } from "playwright-core";

/** The narrowest phones. */
export const NARROW = { width: 360, height: 740 };

/**
 * Runs axe, and shows the page on a narrow screen for a moment.
 * @returns the problems that axe found, and whether the page is wider than the screen.
 */
export async function findPageProblems(page: Page): Promise<string[]> {
  const problems = await findAccessibilityProblems(page);
  const size = page.viewportSize()!;
  await page.setViewportSize(NARROW);
  problems.push(...(await findOverflow(page)));
  await page.setViewportSize(size);
  return problems;
}

/** @returns a problem if the page has to be scrolled sideways. */
export async function findOverflow(page: Page): Promise<string[]> {
  const width = await page.evaluate<number>("document.documentElement.scrollWidth");
  const shown = page.viewportSize()!.width;
  return width > shown ? [`${width} pixels wide, on a screen of ${shown}`] : [];
}

/** @returns the first element without a name for screen readers. */
export async function findUnnamed(page: Page): Promise<string[]> {
  const unnamed = /- (button|textbox|link|combobox|img|region|table|tablist)( \[|:|$)/m;
  const [found] = unnamed.exec(await page.locator("body").ariaSnapshot()) ?? [];
  return found === undefined ? [] : [`without a name: ${found}`];
}

const CHANGE =
  / -X |underpass (?:login|http|tcp|tokens mint|tunnels delete|vpn .* (?:add|remove|--setup))/;

/** @returns the commands on the page, also in closed details, that a viewer may not run. */
export async function findChangingCommands(page: Page): Promise<string[]> {
  const commands = await page.getByRole("main").locator(".command code").allTextContents();
  return commands.filter((command) => CHANGE.test(command));
}

/**
 * Without elements that only return the focus to an open menu or dialog: they are hidden from screen readers, and have the
 * focus for no longer than that takes. An open menu is outside of the landmarks of the page.
 */
const AXE_CONTEXT = `{ exclude: [["[data-base-ui-focus-guard]"]] }`;
/** Not described, and not sent from the page: the elements that satisfy a rule, which are thousands. */
const VIOLATIONS_ONLY = `resultTypes: ["violations"]`;
const AXE_RUN = `axe.run(${AXE_CONTEXT}, { ${VIOLATIONS_ONLY}, rules: { region: { enabled: false } } })`;
const AXE_RUN_CONTRAST = `axe.run(${AXE_CONTEXT}, { ${VIOLATIONS_ONLY}, runOnly: ["color-contrast"] })`;

/** Runs axe in the page, in light and in dark. @returns each violation with the elements that it is about. */
export async function findAccessibilityProblems(page: Page): Promise<string[]> {
  const problems = await runAxe(page, AXE_RUN);
  await page.emulateMedia({ colorScheme: "dark" });
  // Only the colors differ.
  const inDark = await runAxe(page, AXE_RUN_CONTRAST);
  await page.emulateMedia({ colorScheme: "light" });
  return [...problems, ...inDark.map((problem) => `in dark: ${problem}`)];
}

async function runAxe(page: Page, run: string): Promise<string[]> {
  // Transitions would change the colors while axe reads them. Those of an element that disappears are canceled.
  await page.evaluate(
    "Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => {})",
  );
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source);
  const violations = await page.evaluate<axe.Result[]>(`${run}.then((found) => found.violations)`);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}
