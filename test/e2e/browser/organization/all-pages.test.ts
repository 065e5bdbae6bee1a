/** Every page with the navigation, with names that a hostile user has chosen for everything that has one. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startApi } from "../../../harness/server/api.ts";
import {
  createFullOrganization,
  type FullOrganization,
} from "../../../harness/browser/full-organization.ts";
import {
  NARROW,
  findAccessibilityProblems,
  findPageProblems,
  findUnnamed,
} from "../../../harness/browser/page-checks.ts";
import { SHELL_PATHS, usePages, waitForContent } from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

let organization: FullOrganization;
beforeAll(async () => {
  organization = await createFullOrganization(pages.api);
});
afterAll(() => organization?.[Symbol.asyncDispose]());

/** More of them on a page are alike, such as the events of the audit log. */
const OPENED_DETAILS = 3;

/** Pages that show their commands beside what they are about, or that only a browser needs. */
const WITHOUT_COMMAND_LINE = new Set<string>([
  "/requests",
  "/requests/:id",
  "/receivers/:id",
  "/billing",
  "/me",
]);

/** By path, of all pages that a test has opened so far. */
const titles = new Map<string, string>();
const MIDDLE = SHELL_PATHS.length / 2;

test.each([
  ["first half", SHELL_PATHS.slice(0, MIDDLE)],
  ["second half", SHELL_PATHS.slice(MIDDLE)],
])(
  "axe finds nothing on any page with details open, each fits 360 pixels, has a title, and names everything: %s",
  async (_half, paths) => {
    const page = await pages.openAs(organization.owner.email);
    const problems: unknown[] = [];
    for (const path of paths) {
      await page.goto(pages.origin + organization.getPath(path));
      await waitForContent(page);
      titles.set(path, await page.title());
      await page.evaluate(
        `for (const each of [...document.querySelectorAll("details")].slice(0, ${OPENED_DETAILS}))
         each.open = true`,
      );
      const commandLines = await page.getByText("Do this on the command line").count();
      expect([path, commandLines]).toEqual([path, WITHOUT_COMMAND_LINE.has(path) ? 0 : 1]);
      const found = [...(await findPageProblems(page)), ...(await findUnnamed(page))];
      problems.push(...found.map((problem) => [path, problem]));
    }
    expect(problems).toEqual([]);
    const shown = [...titles.values()];
    expect(shown).toEqual([...new Set(shown)]);
    expect(shown.filter((title) => !title.endsWith(" · Underpass"))).toEqual([]);
  },
);

test.each([
  ["/tunnels", { 768: 180, 375: 128 }],
  ["/receivers", { 1024: 128, 768: 128, 375: 128 }],
  ["/networks", { 375: 128 }],
  ["/networks/:id", { 375: 96, 320: 80 }],
] as const)(
  "the table of %s fits on a screen of each width, and what its rows are about is readable: %j",
  async (path, nameMinByWidth) => {
    const page = await pages.openAs(organization.owner.email, organization.getPath(path));
    for (const [width, nameMin] of Object.entries(nameMinByWidth)) {
      await page.setViewportSize({ width: Number(width), height: 800 });
      const [name, hidden] = await page.evaluate<[number, number]>(`(() => {
        const frame = document.querySelector(".table-frame");
        const { width } = frame.querySelector("td").getBoundingClientRect();
        return [width, frame.scrollWidth - frame.clientWidth];
      })()`);
      // A hidden title can take one pixel.
      expect([width, hidden > 1]).toEqual([width, false]);
      expect([width, name < nameMin]).toEqual([width, false]);
    }
  },
);

test("with forced colors, the current page and a chosen button can be told from the others", async () => {
  const page = await pages.openAs(organization.owner.email, "/metrics");
  await page.emulateMedia({ forcedColors: "active" });
  const readStyle = (selector: string, property: string) =>
    page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).${property}`);
  const navigation = ".sidebar .navigation-group a";
  const current = await readStyle(`${navigation}[aria-current]`, "borderInlineStartWidth");
  expect([current, await readStyle(navigation, "borderInlineStartWidth")]).toEqual(["4px", "0px"]);
  const chosen = await readStyle("button[aria-pressed=true]", "backgroundColor");
  expect(chosen).not.toBe(await readStyle("button[aria-pressed=false]", "backgroundColor"));
  await page.goto(`${pages.origin}/`);
  await page.locator(".notice").first().waitFor();
  expect(await readStyle(".notice", "borderTopWidth")).toBe("1px");
});

test("axe finds nothing in the list of keys, a menu and the narrow navigation", async () => {
  const page = await pages.openAs(organization.owner.email, "/audit");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByRole("menuitem").first().waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.setViewportSize(NARROW);
  await page.getByRole("button", { name: "Open the navigation" }).click();
  await page.getByRole("dialog", { name: "Navigation" }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
});

test("a normal page is where a wide one is, as wide on a laptop, and narrower on a large screen", async () => {
  const page = await pages.openAs(organization.owner.email);
  await page.setViewportSize({ width: 1440, height: 800 });
  expect(await measure("/projects")).toEqual(await measure("/tunnels"));
  await page.setViewportSize({ width: 1920, height: 1000 });
  const [normal, wide] = [await measure("/projects"), await measure("/tunnels")];
  expect(normal.left).toBe(wide.left);
  expect(normal.width).toBeLessThan(wide.width);

  async function measure(path: string): Promise<{ left: number; width: number }> {
    await page.goto(pages.origin + path);
    await waitForContent(page);
    return page.evaluate(`({
      left: document.querySelector("h1").getBoundingClientRect().left,
      width: document.querySelector(".page").clientWidth,
    })`);
  }
});

/** The options of commands, such as `--server`, that have more than one line. */
const BROKEN_OPTIONS = `[...document.querySelectorAll(".command code")].flatMap((code) => {
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  const broken = [];
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    for (const { 0: option, index } of node.data.matchAll(/--[a-z-]+/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + option.length);
      if (range.getClientRects().length > 1) broken.push(option);
    }
  }
  return broken;
})`;

test("an option of a command is not broken after its hyphens", async () => {
  const page = await pages.openAs(organization.owner.email, "/tokens");
  await page.getByText("Do this on the command line").click();
  const broken: string[] = [];
  for (let width = 300; width < 420; width += 5) {
    await page.setViewportSize({ width, height: 800 });
    broken.push(...(await page.evaluate<string[]>(BROKEN_OPTIONS)));
  }
  expect(broken).toEqual([]);
});
