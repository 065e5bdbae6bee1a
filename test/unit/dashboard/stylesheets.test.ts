/** The stylesheets of pages: all that were loaded apply to every page, and the docked inspector is on most of them. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";

const DASHBOARD = join(ROOT, "dashboard");

const PAGE_SHEETS = globSync(["pages/**/*.css", "app/**/*.css"], { cwd: DASHBOARD });

function readSheet(path: string): string {
  return readFileSync(join(DASHBOARD, path), "utf8").replaceAll(/\/\*.*?\*\//gs, "");
}

function findClasses(text: string): string[] {
  return Array.from(text.matchAll(/\.([a-z][\w-]*)/g), ([, name]) => name!);
}

/** The classes of the style sheets that every page has, without that of the exceptions for forced colors. */
function readSharedClasses(): Set<string> {
  const shared = globSync("styles/*.css", { cwd: DASHBOARD });
  const sheets = shared.filter((path) => !path.endsWith("forced-colors.css"));
  return new Set(sheets.flatMap((path) => findClasses(readSheet(path))));
}

/** Each selector of a list by itself. The commas of `:is(a, b)` do not separate selectors. */
function listSelectors(text: string): string[] {
  return Array.from(text.matchAll(/([^{};]+)\{/g), ([, list]) => list!.trim())
    .filter((list) => !list.startsWith("@"))
    .flatMap((list) => list.split(/,(?![^(]*\))/).map((selector) => selector.trim()));
}

/** `pages/requests/detail/detail.css` belongs to `pages/requests`. */
function getPage(path: string): string {
  return dirname(path).split("/").slice(0, 2).join("/");
}

test("no class has a style of two pages, unless it belongs to all pages", () => {
  const sharedClasses = readSharedClasses();
  const pagesByClass = new Map<string, Set<string>>();
  for (const path of PAGE_SHEETS) {
    for (const name of findClasses(readSheet(path))) {
      if (sharedClasses.has(name)) continue;
      pagesByClass.set(name, (pagesByClass.get(name) ?? new Set()).add(getPage(path)));
    }
  }
  expect(pagesByClass.size).toBeGreaterThan(100);
  const inconsistent = [...pagesByClass].filter(([, pages]) => pages.size > 1);
  expect(inconsistent.map(([name, pages]) => [name, ...pages])).toEqual([]);
});

test("each rule of a page has a class of this page, so that it does not apply to the pages that are opened later", () => {
  const sharedClasses = readSharedClasses();
  const rules = PAGE_SHEETS.flatMap((path) =>
    listSelectors(readSheet(path)).map((selector) => ({ path, selector })),
  );
  expect(rules.length).toBeGreaterThan(300);
  const withoutOwnClass = rules.filter(({ selector }) =>
    findClasses(selector).every((name) => sharedClasses.has(name)),
  );
  expect(withoutOwnClass).toEqual([]);
});
