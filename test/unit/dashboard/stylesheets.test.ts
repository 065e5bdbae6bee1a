/** The stylesheets of pages: all that were loaded apply to every page, and the docked inspector is on most of them. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";

const DASHBOARD = join(ROOT, "dashboard");

function readClasses(path: string): Set<string> {
  const text = readFileSync(join(DASHBOARD, path), "utf8").replaceAll(/\/\*.*?\*\//gs, "");
  return new Set(Array.from(text.matchAll(/\.([a-z][\w-]*)/g), ([, name]) => name!));
}

/** `pages/requests/detail/detail.css` belongs to `pages/requests`. */
function getPage(path: string): string {
  return dirname(path).split("/").slice(0, 2).join("/");
}

test("no class has a style of two pages, unless it belongs to all pages", () => {
  // It has the exceptions of all pages.
  const shared = globSync("styles/*.css", { cwd: DASHBOARD }).filter(
    (path) => !path.endsWith("forced-colors.css"),
  );
  const sharedClasses = new Set(shared.flatMap((path) => [...readClasses(path)]));
  const pagesByClass = new Map<string, Set<string>>();
  for (const path of globSync(["pages/**/*.css", "app/**/*.css"], { cwd: DASHBOARD })) {
    for (const name of readClasses(path)) {
      if (sharedClasses.has(name)) continue;
      pagesByClass.set(name, (pagesByClass.get(name) ?? new Set()).add(getPage(path)));
    }
  }
  expect(pagesByClass.size).toBeGreaterThan(100);
  const inconsistent = [...pagesByClass].filter(([, pages]) => pages.size > 1);
  expect(inconsistent.map(([name, pages]) => [name, ...pages])).toEqual([]);
});
